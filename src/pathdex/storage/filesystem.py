"""What Python lacks: whole writes, files and folders that are on disk when a call returns, swapping two paths."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from typing_extensions import Buffer

_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP}
"""Errors of file systems that cannot sync a folder."""
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # Linux, renameat2
_RENAME_SWAP = 2  # macOS, renamex_np
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EPERM}
"""An old kernel, a file system without exchange, or a sandbox that blocks the call."""


def write_all(handle: int, data: Buffer) -> None:
    """Write all bytes of a buffer: the system may take only a part of them at a time."""
    with memoryview(data) as view, view.cast("B") as rest:
        done = 0
        while done < len(rest):
            with rest[done:] as block:
                done += os.write(handle, block)


def write_file(path: Path, blocks: Iterable[Buffer]) -> None:
    """Write a new file, not yet synced."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o644)
    try:
        for block in blocks:
            write_all(handle, block)
    finally:
        os.close(handle)


def append_line(path: Path, line: bytes) -> None:
    """Add a line to a file, which is created if needed, and sync it."""
    is_new = not path.exists()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
    try:
        write_all(handle, line + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
    if is_new:
        sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":  # Windows does not open folders.
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if not (is_folder and error.errno in _NO_FOLDER_SYNC):
            raise
    finally:
        os.close(handle)


def make_folders(path: Path) -> None:
    """Create a folder and its missing parents, durably."""
    if path.is_dir():
        return
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        for folder in missing:
            sync(folder.parent)
    except OSError:
        with suppress(OSError):  # A repeated call must not take them for synced.
            for folder in missing:
                folder.rmdir()
        raise


def exchange(first: Path, second: Path) -> bool:
    """Swap two existing paths atomically. False, with nothing changed, where the system cannot do it."""
    if sys.platform not in ("linux", "darwin"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(first), os.fsencode(second)
    try:
        if sys.platform == "darwin":
            failed = libc.renamex_np(*paths, _RENAME_SWAP)
        else:
            failed = libc.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE)
    except AttributeError:  # The C library has no such function.
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(first), None, str(second))
