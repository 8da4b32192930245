"""An open text file, plain or gzip: reads at any place, and tells whether its content is still the same."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from pathlib import Path
from typing import Protocol

from pathdex.errors import DataError, Problem

CHUNK = 1 << 18
EDGE = 1024
"""Bytes at both ends of what was read that identify a file."""


class TextFile(Protocol):
    """A file that is read by offset. Offsets of a gzip file count the bytes of its content."""

    path: Path
    inode: int

    def read_at(self, offset: int) -> bytes: ...

    def size(self) -> int | None:
        """Bytes to read in total, if known."""
        ...

    def digest(self, offset: int) -> str:
        """Identifies the content up to `offset`."""
        ...

    def close(self) -> None: ...


class PlainFile:
    """A file that may grow."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = open_for_reading(path)
        self.inode = os.fstat(self._handle).st_ino

    def read_at(self, offset: int) -> bytes:
        return os.pread(self._handle, CHUNK, offset)

    def size(self) -> int:
        return os.fstat(self._handle).st_size

    def digest(self, offset: int) -> str:
        return edges_digest(self._handle, offset)

    def close(self) -> None:
        os.close(self._handle)


class GzippedFile:
    """A compressed file, which does not change. Seeking decompresses all that comes before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = open_for_reading(path)
        self.inode = os.fstat(self._handle).st_ino
        self._raw = os.fdopen(os.dup(self._handle), "rb")
        self._stream = gzip.GzipFile(fileobj=self._raw)

    def read_at(self, offset: int) -> bytes:
        try:
            self._stream.seek(offset)
            return self._stream.read(CHUNK)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(Problem(f"{self.path} cannot be read ({error})", remedy="get the file again")) from error

    def size(self) -> None:
        return None

    def digest(self, offset: int) -> str:
        """Of the compressed file."""
        return edges_digest(self._handle, os.fstat(self._handle).st_size)

    def close(self) -> None:
        self._stream.close()
        self._raw.close()
        os.close(self._handle)


def open_text(path: Path) -> TextFile:
    return GzippedFile(path) if path.suffix == ".gz" else PlainFile(path)


def open_for_reading(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise DataError(Problem(f"{path} does not exist", remedy="check the path")) from None
    except OSError as error:
        reason = error.strerror or error
        raise DataError(Problem(f"{path} cannot be read ({reason})", remedy="check the file's permissions")) from error


def edges_digest(handle: int, end: int) -> str:
    """Of the first and the last `EDGE` bytes of what comes before `end`."""
    length = min(EDGE, end)
    edges = os.pread(handle, length, 0) + os.pread(handle, length, end - length)
    return hashlib.blake2b(edges, digest_size=16).hexdigest()
