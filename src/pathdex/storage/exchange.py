"""Swapping two paths in one step, with the system call that Python does not offer."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # Linux, renameat2
_RENAME_SWAP = 2  # macOS, renamex_np
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EPERM}
"""An old kernel, a file system without exchange, or a sandbox that blocks the call."""


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
