"""Writable copies of mapped arrays with room to grow, which share unchanged pages with the file.

A region of memory is reserved, and the file is mapped over its beginning, private to the process. Only pages that are
written take memory. Elsewhere than on Linux and macOS, the array is copied.
"""

from __future__ import annotations

import ctypes
import errno
import math
import mmap
import os
import sys
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_T = TypeVar("_T", bound=np.generic)
_MAP_FIXED = 0x10
_MAP_NORESERVE = 0x4000 if sys.platform == "linux" else 0x40
_FAILED = ctypes.c_void_p(-1).value


def private_copy(array: NDArray[_T], capacity: int, *, map_file: bool = False) -> NDArray[_T]:
    """A writable copy with room for `capacity` rows, zero past the end of the array.

    With `map_file`, an array from `np.load(..., mmap_mode="r")` is mapped again from its file, which must not have been
    replaced meanwhile.
    """
    capacity = max(capacity, len(array))
    mappable = map_file and isinstance(array, np.memmap) and array.size and array.flags.c_contiguous
    if mappable and sys.platform in ("linux", "darwin"):
        return _mapped(array, capacity)
    grown = np.zeros((capacity, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def _mapped(array: Any, capacity: int) -> NDArray[Any]:
    shape = (capacity, *array.shape[1:])
    size = array.offset + math.prod(shape) * array.itemsize
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    region = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    whole = np.frombuffer(region, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    handle = os.open(array.filename, os.O_RDONLY)
    try:
        state, mapped = os.fstat(handle), getattr(array, "signature", None)
        if mapped is not None and (state.st_dev, state.st_ino) != mapped[:2]:
            raise OSError(errno.ESTALE, "the file was replaced", str(array.filename))
        # The region's own object unmaps all of it, whatever is mapped there by then.
        place = libc.mmap(
            whole.ctypes.data,
            array.offset + array.nbytes,
            mmap.PROT_READ | mmap.PROT_WRITE,
            mmap.MAP_PRIVATE | _MAP_FIXED | _MAP_NORESERVE,
            handle,
            0,
        )
        if place == _FAILED:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(array.filename))
    finally:
        os.close(handle)
    return np.ndarray(shape, array.dtype, whole.data, array.offset)
