"""Adam on some rows of a table, in one pass over memory."""

from __future__ import annotations

import numpy as np
from numba import njit

from pathdex.kernels.prefetch import ROW_LINES, prefetch_lines
from pathdex.kernels.types import Floats, Ints

AHEAD = 6
"""Rows between a prefetch and its use: three tables of five cache lines each are about what a core can wait for."""


@njit(cache=True, nogil=True, fastmath=True)
def update_rows(
    table: Floats, first: Floats, second: Floats, gradient: Floats, rows: Ints, beta1: float, beta2: float, scale: float
) -> None:
    """Update `table[rows]` and their moments by `gradient` (row, dim); `scale` is the bias-corrected learning rate."""
    keep_first, take_first = np.float32(beta1), np.float32(1 - beta1)
    keep_second, take_second = np.float32(beta2), np.float32(1 - beta2)
    rate, tiny = np.float32(scale), np.float32(1e-8)
    for number in range(len(rows)):
        row = rows[number]
        if number + AHEAD < len(rows):
            prefetch_lines(table, rows[number + AHEAD], ROW_LINES)
            prefetch_lines(first, rows[number + AHEAD], ROW_LINES)
            prefetch_lines(second, rows[number + AHEAD], ROW_LINES)
        for k in range(table.shape[1]):
            first[row, k] = keep_first * first[row, k] + take_first * gradient[number, k]
        for k in range(table.shape[1]):
            second[row, k] = keep_second * second[row, k] + take_second * gradient[number, k] * gradient[number, k]
        for k in range(table.shape[1]):
            table[row, k] -= rate * first[row, k] / (np.sqrt(second[row, k]) + tiny)
