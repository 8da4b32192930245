"""Rows of a table by their number: gather with dropout, scatter, and small numbers for the rows of a step."""

from __future__ import annotations

import numpy as np
from numba import njit

from pathdex.kernels.prefetch import prefetch_row
from pathdex.kernels.types import Floats, Int32s, Ints

AHEAD = 16
"""Rows between a prefetch and its use."""
_GOLDEN, _MIX1, _MIX2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BITS = np.uint64(16)
LEVELS = 1 << 16
"""Dropout probabilities are multiples of 1 / LEVELS."""


class RowNumbering:
    """Numbers the rows that a step uses, in time proportional to the step, whatever the size of the table."""

    def __init__(self, num_rows: int) -> None:
        self.numbers = np.full(num_rows, -1, np.int32)

    def __call__(self, *codes: Ints) -> tuple[Ints, list[Ints]]:
        """The distinct codes in order of appearance, and arrays of their numbers. Negative codes stay as they are."""
        used = np.empty(min(len(self.numbers), sum(one.size for one in codes)), np.int64)
        count, local = 0, []
        for one in codes:
            local.append(np.empty(one.shape, np.int64))
            count = number_rows(one.ravel(), self.numbers, used, count, local[-1].ravel())
        forget_rows(used[:count], self.numbers)
        return used[:count], local


@njit(cache=True, nogil=True)
def number_rows(codes: Ints, numbers: Int32s, used: Ints, count: int, local: Ints) -> int:
    """Number the distinct codes in order of appearance, from `count` on; negative codes keep their value.

    `numbers` (code,) holds -1 for codes without a number, `used` receives the code of each number and `local` the
    number of each code. Returns the new count. `forget_rows` resets `numbers`.
    """
    for i in range(len(codes)):
        code = codes[i]
        if code < 0:
            local[i] = code
            continue
        if numbers[code] < 0:
            numbers[code] = count
            used[count] = code
            count += 1
        local[i] = numbers[code]
    return count


@njit(cache=True, nogil=True)
def forget_rows(used: Ints, numbers: Int32s) -> None:
    """Set the numbers of the used codes back to -1."""
    for code in used:
        numbers[code] = -1


@njit(cache=True, nogil=True)
def take_rows(table: Floats, rows: Ints, result: Floats) -> None:
    """result[i] = table[rows[i]]."""
    for i in range(len(rows)):
        if i + AHEAD < len(rows):
            prefetch_row(table, rows[i + AHEAD])
        source = table[rows[i]]
        for k in range(len(source)):
            result[i, k] = source[k]


@njit(cache=True, nogil=True, fastmath=True)
def gather_dropout(rows: Floats, start: Floats, codes: Ints, keep: int, seed: int, result: Floats) -> None:
    """result[i] = rows[codes[i]], or `start` for negative codes, with dropout.

    An element is kept with probability keep / LEVELS and divided by it. Whether it is kept depends on the seed and its
    place in `result` only.
    """
    scale = np.float32(LEVELS / keep)
    dim = result.shape[1]
    for i in range(len(codes)):
        code = codes[i]
        source = start if code < 0 else rows[code]
        if keep == LEVELS:
            for k in range(dim):
                result[i, k] = source[k]
        else:
            for k in range(dim):
                result[i, k] = source[k] * (scale if _kept(seed, i, k, dim, keep) else np.float32(0.0))


@njit(cache=True, nogil=True, fastmath=True)
def gather_dropout_backward(
    gradient: Floats, codes: Ints, keep: int, seed: int, rows_gradient: Floats, start_gradient: Floats
) -> None:
    """Add the gradient with respect to the rows and the start vector of `gather_dropout`."""
    scale = np.float32(LEVELS / keep)
    dim = gradient.shape[1]
    for i in range(len(codes)):
        code = codes[i]
        target = start_gradient if code < 0 else rows_gradient[code]
        if keep == LEVELS:
            for k in range(dim):
                target[k] += gradient[i, k]
        else:
            for k in range(dim):
                target[k] += gradient[i, k] * (scale if _kept(seed, i, k, dim, keep) else np.float32(0.0))


@njit(inline="always")
def _kept(seed: int, row: int, column: int, dim: int, keep: int) -> bool:
    """Whether dropout keeps an element: 16 bits of a hash (splitmix64) of its place."""
    place = np.uint64(row) * np.uint64((dim + 3) // 4) + np.uint64(column >> 2)
    bits = np.uint64(seed) + _GOLDEN * (place + np.uint64(1))
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX2
    bits = bits ^ (bits >> np.uint64(31))
    return bool(((bits >> (_BITS * np.uint64(column & 3))) & np.uint64(LEVELS - 1)) < np.uint64(keep))


@njit(cache=True, nogil=True, fastmath=True)
def add_rows(rows: Floats, places: Ints, results: Floats) -> None:
    """results[places[i]] += rows[i], in order, so that repeated places give the same bits each time."""
    for i in range(len(rows)):
        target = results[places[i]]
        for k in range(len(target)):
            target[k] += rows[i, k]
