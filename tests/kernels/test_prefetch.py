"""A hint to the processor changes nothing that a program can see."""

import numpy as np
from numba import njit

from pathdex.kernels.prefetch import prefetch_row


@njit  # type: ignore[untyped-decorator]
def _sums(table: np.ndarray, ahead: int) -> np.ndarray:
    sums = np.zeros(len(table))
    for row in range(len(table)):
        prefetch_row(table, row + ahead)
        sums[row] = table[row].sum()
    return sums


def test_rows_are_read_as_they_are_also_where_the_row_asked_for_is_not_there() -> None:
    table = np.arange(12.0).reshape(4, 3)
    assert _sums(table, 2).tolist() == [3.0, 12.0, 21.0, 30.0]
    assert _sums(table, 1_000_000).tolist() == [3.0, 12.0, 21.0, 30.0]
