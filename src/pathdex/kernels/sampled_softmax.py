"""The softmax loss of a block of rows of scores, with its gradient from draws (`draws.py`)."""

from __future__ import annotations

import numpy as np
from numba import njit

from pathdex.kernels.draws import draw_row
from pathdex.kernels.softmax import PADDING, softmax_row
from pathdex.kernels.sparse import gather_sum, scatter_add
from pathdex.kernels.types import Floats, Ints

SMALLEST = np.float32(1e-30)
"""Probabilities below this count as this in the loss, whose gradient is that of the true probability."""


@njit(cache=True, nogil=True)
def softmax_rows(
    scores: Floats,
    offset: Floats,
    positive: Floats,
    own: Ints,
    place: int,
    points: Floats,
    draws: int,
    users: Floats,
    items: Floats,
    pulls: Floats,
    users_gradient: Floats,
    items_gradient: Floats,
    sums: Floats,
) -> float:
    """The sum of -log p(y_i | x_i) for scores (row, column) = users @ items.T, which are overwritten.

    `offset` (column,) is added to the scores first; its length is a multiple of LANES, with `PADDING` where there is no
    item. `positive` (row,) holds the targets' scores, which take column `place`, and `own` the target's column among
    the items or -1, so that a target counts once. `pulls` (row,) receives the gradient with respect to `positive`.
    That of the other scores is drawn, `draws` columns per row with `points` (row,) uniform in [0, 1): it overwrites
    users_gradient (row, dim), and is added to items_gradient (column, dim) and to the sums (column,).
    """
    loss, scale = 0.0, np.float32(draws)
    columns, parts = np.empty(draws + 2, np.int64), np.empty(draws + 2, np.float32)
    state = np.empty(2, np.float32)
    for row in range(len(scores)):
        _add(offset, scores, row)
        if own[row] >= 0:
            scores[row, own[row]] = PADDING
        scores[row, place] = positive[row]
        softmax_row(scores, row)
        share = scores[row, place]
        scores[row, place] = np.float32(0.0)
        pulls[row] = share - np.float32(1.0)
        loss -= np.log(max(share, SMALLEST))
        state[0], state[1] = np.float32(0.0), points[row]
        made = draw_row(scores, row, scale, state, columns, parts, 0)
        for one in range(made):
            parts[one] /= scale
            sums[columns[one]] += parts[one]
        gather_sum(parts, columns, made, items, users_gradient, row)
        scatter_add(parts, columns, made, users, row, items_gradient)
    return loss


@njit(cache=True, nogil=True, fastmath=True)
def _add(values: Floats, scores: Floats, row: int) -> None:
    for k in range(len(values)):
        scores[row, k] += values[k]
