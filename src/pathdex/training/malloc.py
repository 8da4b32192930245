"""Freed memory: every training step needs the same amount again, a background task does not."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # mallopt(3)


def keep_freed_memory() -> bool:
    """Stop glibc from returning freed blocks to the system; does nothing on other platforms.

    By default every step maps large tensors again and the kernel zeroes their pages, which took 28% of an encoder step
    on one core. Returns whether the settings were applied.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    settings = ((_MMAP_THRESHOLD, 2**30), (_TRIM_THRESHOLD, 2**31 - 1), (_TOP_PAD, 2**26))
    return all(mallopt(ctypes.c_int(name), ctypes.c_int(value)) == 1 for name, value in settings)


def return_freed_memory() -> bool:
    """Return freed blocks to the system now; does nothing without glibc. Returns whether it is supported.

    A thread allocates from an arena of its own. What it has freed stays there, also after it has ended.
    """
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return False
    return True
