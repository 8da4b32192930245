"""Sequences as a sparse matrix of users and items."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from pathdex.data.ragged import Ragged
from pathdex.storage.scratch import scratch_array


def interaction_matrix(rows: Ragged, num_items: int, *, binary: bool) -> sparse.csr_array:
    """(row, item): how often the item occurs in the row; with `binary`, 1 if it does."""
    # Summing works in place, so the matrix needs its own arrays.
    ones, columns = scratch_array(len(rows.values), np.float32), scratch_array(len(rows.values), np.int32)
    ones[:], columns[:] = 1, rows.values
    matrix = sparse.csr_array((ones, columns, rows.offsets.copy()), shape=(len(rows), num_items))
    matrix.sum_duplicates()
    if binary:
        matrix.data[:] = 1
    return matrix
