"""What Python lacks: files and folders that are on disk when a call returns, and swapping two paths in one step."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP}
"""Errors of file systems that cannot sync a folder."""
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # Linux, renameat2
_RENAME_SWAP = 2  # macOS, renamex_np
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EPERM}
"""An old kernel, a file system without exchange, or a sandbox that blocks the call."""


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
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync(folder.parent)


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
