"""A folder whose files are opened once and then read through their handles.

Whatever replaces or removes the folder meanwhile, the reader has the files of one save. Files are opened relative to
the folder's own handle. A file that is a symbolic link, a pipe or a device is refused, since a folder of arrays is made
of plain files only.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import math
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from typing_extensions import Self

HEADER_LIMIT = 10_000
"""Bytes of the header of an array, at most."""
BLOCK = 2**20
Signature: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size, and times of the last change of content and of attributes."""
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BY_HANDLE = os.open in os.supports_dir_fd


class OpenFolder:
    """The open files of a folder, by name. Close it, or use it in a `with` statement."""

    def __init__(self, path: Path, handles: Mapping[str, int] | None = None) -> None:
        """Open the folder; with `handles`, use these files of it, which were opened before."""
        self.path = path
        self._files: dict[str, int] = dict(handles or {})
        self._folder: int | None = None
        if handles is None and _BY_HANDLE:
            self._folder = os.open(path, _FLAGS | getattr(os, "O_DIRECTORY", 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close all files. Arrays that were mapped stay valid."""
        opened = [*self._files.values(), *([] if self._folder is None else [self._folder])]
        self._files, self._folder = {}, None
        for handle in opened:
            with contextlib.suppress(OSError):
                os.close(handle)

    @property
    def handles(self) -> dict[str, int]:
        """The open files by name."""
        return dict(self._files)

    def open(self, name: str) -> int:
        """The handle of a file, opened at the first call; `OSError` unless it is a plain file of this folder."""
        if name not in self._files:
            if self._folder is None and _BY_HANDLE:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path / name))
            try:
                if _BY_HANDLE:
                    handle = os.open(name, _FLAGS | _NO_LINK, dir_fd=self._folder)
                else:
                    if (self.path / name).is_symlink():
                        raise OSError(errno.ELOOP, "it is a symbolic link")
                    handle = os.open(self.path / name, _FLAGS)
            except OSError as error:
                if error.errno in (errno.ELOOP, getattr(errno, "EMLINK", None)):
                    raise OSError(errno.ELOOP, "it is a symbolic link, must be a plain file") from error
                raise
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise OSError(errno.EINVAL, "it is not a plain file")
            self._files[name] = handle
        return self._files[name]

    def size(self, name: str) -> int:
        return os.fstat(self.open(name)).st_size

    def signature(self, name: str) -> Signature:
        """Changes whenever the file does."""
        state = os.fstat(self.open(name))
        return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns

    def read(self, name: str, limit: int | None = None) -> bytes:
        """The content of a file; `OSError` if it is longer than `limit`."""
        if limit is not None and self.size(name) > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes")
        return b"".join(self._blocks(name))

    def digest(self, name: str) -> str:
        """The SHA-256 of a file in hex."""
        digest = hashlib.sha256()
        for block in self._blocks(name):
            digest.update(block)
        return digest.hexdigest()

    def _blocks(self, name: str) -> Any:
        handle, place = self.open(name), 0
        with _positioned(handle) as read:
            while block := read(BLOCK, place):
                yield block
                place += len(block)

    def path_of(self, name: str) -> str:
        """A path that opens this very file, also after it was replaced, where the system has such paths."""
        handle = self.open(name)
        alias = f"/proc/self/fd/{handle}"
        return alias if sys.platform == "linux" and os.path.exists(alias) else str(self.path / name)

    def array(self, name: str, *, mmap: bool = True) -> NDArray[Any]:
        """The array in a `.npy` file, mapped from disk; `ValueError` if it is not exactly one array of numbers."""
        with _positioned(self.open(name)) as read:
            head = io.BytesIO(read(HEADER_LIMIT + npy.MAGIC_LEN + 4, 0))
        shape, by_columns, dtype = _header(head)
        place, size = head.tell(), self.size(name)
        if dtype.kind not in "biuf" or dtype.names is not None or dtype.subdtype is not None:
            raise ValueError(f"its dtype is {dtype}, must be plain numbers")
        if any(length < 0 for length in shape) or place + math.prod(shape) * dtype.itemsize != size:
            raise ValueError(f"its shape {shape} does not fit its size of {size:,} bytes")
        order: Any = "F" if by_columns else "C"
        if not math.prod(shape):
            return np.empty(shape, dtype, order)
        with os.fdopen(os.dup(self.open(name)), "rb") as file:
            array: Any = np.memmap(file, dtype, "r", place, shape, order)
        if not mmap:
            return np.array(array)
        array.filename, array.signature = str(self.path / name), self.signature(name)
        return array  # type: ignore[no-any-return]


def read_plain(path: Path, name: str, limit: int) -> bytes:
    """The content of a plain file of a folder; `OSError` if it is none, or longer than `limit`."""
    with OpenFolder(path) as folder:
        return folder.read(name, limit)


def _header(head: io.BytesIO) -> tuple[tuple[int, ...], bool, Any]:
    """The shape, whether columns come first, and the dtype."""
    try:
        version = npy.read_magic(head)
        return _HEADERS[version](head, max_header_size=HEADER_LIMIT)  # type: ignore[no-any-return]
    except Exception as error:  # numpy parses it as Python text, which fails in many ways.
        raise ValueError(f"its header cannot be read: {type(error).__name__}") from error


_HEADERS: dict[tuple[int, int], Any] = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@contextlib.contextmanager
def _positioned(handle: int) -> Any:
    """A function (size, place) that reads without moving the handle, which other readers may share."""
    if hasattr(os, "pread"):
        yield lambda size, place: os.pread(handle, size, place)
        return
    with os.fdopen(os.dup(handle), "rb") as file:

        def read(size: int, place: int) -> bytes:
            file.seek(place)
            return file.read(size)

        yield read
