"""Sequences as a sparse matrix of users and items."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from pathdex.data.ragged import Ragged


def interaction_matrix(rows: Ragged, num_items: int, *, binary: bool) -> sparse.csr_array:
    """(row, item): how often the item occurs in the row; with `binary`, 1 if it does."""
    ones = np.ones(len(rows.values), np.float32)
    # Summing works in place, so the matrix needs its own arrays.
    matrix = sparse.csr_array((ones, rows.values, rows.offsets), shape=(len(rows), num_items), copy=True)
    matrix.sum_duplicates()
    if binary:
        matrix.data[:] = 1
    return matrix
