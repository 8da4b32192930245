"""Draws from rows of probabilities, which replace them in the gradient of a loss.

The gradient of a softmax loss is the softmax minus the target. The target is one draw from the data; if the softmax is
replaced by the mean of m draws from it, the gradient stays right on average, and its variance grows by about 1 / m.
The product with a row of draws costs a few vectors, that with a row of probabilities a whole matrix.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pathdex.kernels.gemm import LANES
from pathdex.kernels.sparse import block_sum
from pathdex.kernels.types import Floats, Ints

_ONE = np.float32(1.0)


@njit(cache=True, nogil=True)
def draw_row(
    shares: Floats, row: int, scale: np.float32, place: Floats, columns: Ints, counts: Floats, made: int
) -> int:
    """Draw about scale x sum(shares[row]) columns; returns the new number of entries in `columns` and `counts`.

    Systematic sampling: the shares lie side by side on a line, and every point at distance 1 draws the column that it
    falls into. So the expected count of a column is scale x its share, and the real one differs by less than 1. `place`
    (2,) holds the length of the line so far and the next point; several rows may continue one line. The columns are a
    multiple of LANES.
    """
    reached, point = place[0], place[1]
    for begin in range(0, shares.shape[1], LANES):
        mass = scale * block_sum(shares, row, begin)
        if reached + mass <= point:
            reached += mass
            continue
        for quarter in range(begin, begin + LANES, 4):
            first = shares[row, quarter] + shares[row, quarter + 1]
            part = scale * (first + (shares[row, quarter + 2] + shares[row, quarter + 3]))
            if reached + part <= point:
                reached += part
                continue
            for column in range(quarter, quarter + 4):
                reached += scale * shares[row, column]
                if reached > point:
                    count = np.float32(np.int64(reached - point)) + _ONE
                    point += count
                    columns[made], counts[made] = column, count
                    made += 1
    place[0], place[1] = reached, point
    return made
