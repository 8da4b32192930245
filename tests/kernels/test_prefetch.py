"""Prefetching does not change results."""

import numpy as np
from numba import njit

from pathdex.kernels.prefetch import prefetch_lines


@njit
def row_sums(table: np.ndarray, ahead: int) -> np.ndarray:
    sums = np.zeros(len(table))
    for row in range(len(table)):
        prefetch_lines(table, row + ahead, 5)
        sums[row] = table[row].sum()
    return sums


def test_a_prefetch_is_safe_for_any_row() -> None:
    table = np.arange(12.0).reshape(4, 3)
    assert row_sums(table, 2).tolist() == [3.0, 12.0, 21.0, 30.0]
    assert row_sums(table, 1_000_000).tolist() == [3.0, 12.0, 21.0, 30.0]
