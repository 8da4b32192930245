"""Arrays as large as the interactions: in memory while they are small, otherwise mapped from a file that has no name.

The system can write the pages of a mapped file to disk and drop them, so such arrays do not fill the memory. The file
is in the temporary folder of the system (`TMPDIR`) and is gone with the array or the process.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pathdex.errors import StorageError
from pathdex.storage.allowed_memory import allowed_memory

SHARE = 16
"""Arrays are kept in memory up to this part of the memory that the process may use. It changes no result."""
VARIABLE = "PATHDEX_SCRATCH_LIMIT"
"""Environment variable: another limit, in bytes."""
BLOCK = 2**18
"""Elements that are worked on at a time."""
NEAR_BYTES = 2**16
"""Rows at most so far apart are read in one piece."""
PIECE_BYTES = 2**17
"""Linux reads no more of a longer request, by default."""


def scratch_array(shape: int | Sequence[int], dtype: DTypeLike, *, scattered: bool = False) -> NDArray[Any]:
    """An array to be filled. A `StorageError` if the disk is full.

    Reading a `scattered` array brings only what is touched from disk, not what follows; see `read_soon`.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    count, kind = math.prod(sizes), np.dtype(dtype)
    size = count * kind.itemsize
    if size <= memory_limit():
        return np.empty(sizes, kind)
    try:
        with tempfile.TemporaryFile(prefix="pathdex-") as file:
            # A page of a file with holes that finds no space would end the process.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            mapped = mmap.mmap(file.fileno(), size)
    except OSError as error:
        remedy = "free space, or name a folder on a larger disk with the environment variable TMPDIR"
        reason = error.strerror or error
        text = f"cannot reserve {size:,} bytes in the temporary folder {tempfile.gettempdir()}: {reason}; {remedy}"
        raise StorageError(text) from error
    if scattered and hasattr(mmap, "MADV_RANDOM"):
        mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, kind).reshape(sizes)


def read_soon(array: NDArray[Any], rows: NDArray[np.int64]) -> None:
    """Let the system read ascending rows of a scratch array from disk, all at once; nothing if it is in memory."""
    mapped: Any = array
    while isinstance(mapped, np.ndarray):
        mapped = mapped.base
    if isinstance(mapped, memoryview):
        mapped = mapped.obj
    if not isinstance(mapped, mmap.mmap) or not len(rows) or not hasattr(mmap, "MADV_WILLNEED"):
        return
    size, page = array.strides[0], mmap.PAGESIZE
    cuts = np.flatnonzero(np.diff(rows) * size > NEAR_BYTES) + 1
    for run in np.split(rows, cuts):
        begin, end = int(run[0]) * size // page * page, (int(run[-1]) + 1) * size
        for piece in range(begin, min(end, len(mapped)), PIECE_BYTES):
            mapped.madvise(mmap.MADV_WILLNEED, piece, min(PIECE_BYTES, min(end, len(mapped)) - piece))


def memory_limit() -> int:
    """The size in bytes up to which arrays are kept in memory."""
    given = os.environ.get(VARIABLE, "")
    return int(given) if given.isdecimal() else allowed_memory() // SHARE


def blocks(count: int, size: int | None = None) -> Iterator[slice]:
    """The slices of an array of `count` elements, one block of `size` (default `BLOCK`) after the other."""
    size = BLOCK if size is None else size
    for begin in range(0, count, size):
        yield slice(begin, min(begin + size, count))


def permutation(count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """What `generator.permutation(count)` returns."""
    order: NDArray[np.int64] = scratch_array(count, np.int64)
    for part in blocks(count):
        order[part] = np.arange(part.start, part.stop)
    generator.shuffle(order)
    return order
