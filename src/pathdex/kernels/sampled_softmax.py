"""The softmax loss of a block of rows of scores, with its gradient."""

from __future__ import annotations

import numpy as np
from numba import njit

from pathdex.kernels.softmax import PADDING, softmax_row
from pathdex.kernels.types import Floats, Ints

SMALLEST = np.float32(1e-30)
"""Probabilities below this count as this in the loss, whose gradient is that of the true probability."""


@njit(cache=True, nogil=True)
def softmax_rows(
    scores: Floats, offset: Floats, positive: Floats, own: Ints, place: int, pulls: Floats, sums: Floats
) -> float:
    """Replace scores (row, column) by the gradient of sum_i -log p(y_i | x_i); returns that loss.

    `offset` (column,) is added to the scores first; its length is a multiple of LANES, with `PADDING` where there is no
    item. `positive` (row,) holds the targets' scores, which take column `place`, and `own` the target's column among
    the items or -1, so that a target counts once. `pulls` (row,) receives the gradient with respect to `positive`; that
    of column `place` is 0. The sum of the new rows is added to `sums` (column,).
    """
    loss = 0.0
    for row in range(len(scores)):
        _add(offset, scores[row])
        if own[row] >= 0:
            scores[row, own[row]] = PADDING
        scores[row, place] = positive[row]
        softmax_row(scores, row)
        share = scores[row, place]
        scores[row, place] = np.float32(0.0)
        pulls[row] = share - np.float32(1.0)
        loss -= np.log(max(share, SMALLEST))
        _add(scores[row], sums)
    return loss


@njit(cache=True, nogil=True, fastmath=True)
def _add(values: Floats, total: Floats) -> None:
    for k in range(len(total)):
        total[k] += values[k]
