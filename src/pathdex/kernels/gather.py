"""Rows of a table by their number: gather, scatter, and small numbers for the rows of a step."""

from __future__ import annotations

import numpy as np
from numba import njit

from pathdex.kernels.prefetch import ROW_LINES, prefetch_lines
from pathdex.kernels.types import Floats, Int16s, Int32s, Ints

_ZERO = np.float32(0.0)
AHEAD = 16
"""Rows between a prefetch and its use."""


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
            prefetch_lines(table, rows[i + AHEAD], ROW_LINES)
        source = table[rows[i]]
        for k in range(len(source)):
            result[i, k] = source[k]


@njit(cache=True, nogil=True)
def gather_vectors(
    rows: Floats, start: Floats, codes: Ints, bits: Int16s, limit: int, scale: float, result: Floats
) -> None:
    """result[t, b] = rows[codes[b, t]], or `start` for negative codes, with dropout.

    Vectors are the first columns of the rows. Elements with bits[b, t] below the limit are multiplied by `scale`, and
    others become 0. Bits (0, 0, dim) keep all.
    """
    below, factor = np.int16(limit), np.float32(scale)
    for b in range(codes.shape[0]):
        for t in range(codes.shape[1]):
            code, target = codes[b, t], result[t, b]
            source = start if code < 0 else rows[code]
            if len(bits) == 0:
                for k in range(len(target)):
                    target[k] = source[k]
            else:
                own = bits[b, t]
                for k in range(len(target)):
                    target[k] = source[k] * factor if own[k] < below else _ZERO


@njit(cache=True, nogil=True)
def scatter_vectors(
    gradient: Floats,
    codes: Ints,
    bits: Int16s,
    limit: int,
    scale: float,
    rows_gradient: Floats,
    start_gradient: Floats,
) -> None:
    """Add the gradient with respect to the rows and the start vector of `gather_vectors`."""
    below, factor = np.int16(limit), np.float32(scale)
    for b in range(codes.shape[0]):
        for t in range(codes.shape[1]):
            code, source = codes[b, t], gradient[t, b]
            target = start_gradient if code < 0 else rows_gradient[code]
            if len(bits) == 0:
                for k in range(len(source)):
                    target[k] += source[k]
            else:
                own = bits[b, t]
                for k in range(len(source)):
                    target[k] += source[k] * factor if own[k] < below else _ZERO


@njit(cache=True, nogil=True, fastmath=True)
def add_rows(rows: Floats, places: Ints, results: Floats) -> None:
    """results[places[i]] += rows[i], in order, so that repeated places give the same bits each time."""
    for i in range(len(rows)):
        target = results[places[i]]
        for k in range(len(target)):
            target[k] += rows[i, k]


@njit(cache=True, nogil=True, fastmath=True)
def add_parts(rows: Floats, places: Ints, results: Floats) -> None:
    """Split rows (row, part x dim) into parts and add them to results (part, place, dim), in order."""
    width = results.shape[2]
    for i in range(len(rows)):
        for part in range(len(results)):
            target, source = results[part, places[i]], rows[i, part * width : (part + 1) * width]
            for k in range(width):
                target[k] += source[k]
