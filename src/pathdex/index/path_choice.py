"""The paths that one item chooses against given path sizes: the inner loop of Algorithm 2."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.types import Floats, Int32s

PathCodes: TypeAlias = NDArray[np.integer]
"""Codes of paths or smaller numbers for them."""
_TAKEN = np.int32(2**31 - 1)
"""Larger than any |c|: marks a candidate path that the item has already chosen."""
_STEPS = 1024
"""Path sizes whose price is looked up."""
_ROUNDING = 1e-9
"""More than the rounding error of a gain, relative to N_v."""


class Penalty(NamedTuple):
    """alpha (f(n+1) - f(n)), the price of joining a path of n items; `steps` holds it for small n."""

    alpha: float
    degree: float
    steps: NDArray[np.float64]

    @classmethod
    def of(cls, alpha: float, degree: float) -> Penalty:
        steps = np.empty(_STEPS)
        _tabulate(alpha, degree, steps)
        return cls(alpha, degree, steps)


@njit(cache=True, nogil=True, error_model="numpy")
def choose_paths(
    candidate_paths: PathCodes,
    scores: Floats,
    N_v: float | np.float32,
    last: PathCodes,
    sizes: Int32s,
    penalty: Penalty,
    seen: Int32s,
    chosen: PathCodes,
) -> int:
    """Choose up to J paths of one item one after the other, each with the largest incremental gain; returns how many.

    `last` are the paths on which `sizes` counts the item, `seen` is room for |c| of each candidate without it. Sizes
    are read as far as candidates can win: scores descend, and a path is at best empty.
    """
    known, partial_sum = 0, 0.0
    for j in range(len(chosen)):
        log_sum = np.log(partial_sum) if j > 0 else 0.0
        best, best_gain, smallest, too_small = -1, -np.inf, _TAKEN, 0.0
        for c in range(len(candidate_paths)):
            if partial_sum + scores[c] <= too_small or scores[c] <= 0:
                break
            if c == known:
                seen[c] = _size_without(candidate_paths[c], last, sizes)
                known += 1
            # Scores descend, so only a path smaller than all before it can have a larger gain.
            if seen[c] < smallest:
                smallest = seen[c]
                likelihood = N_v * (np.log(partial_sum + scores[c]) - log_sum)
                gain = likelihood - _price(penalty, smallest)
                if best < 0 or gain > best_gain:
                    best, best_gain = c, gain
                    # log(x) >= 1 - 1/x: below this sum, more likelihood is lost than an empty path saves.
                    saving = (_price(penalty, smallest) - _price(penalty, 0)) / N_v
                    too_small = (partial_sum + scores[c]) * (1.0 - saving - _ROUNDING)
                if smallest == 0:
                    break
        if best < 0:
            return j
        chosen[j] = candidate_paths[best]
        partial_sum += scores[best]
        seen[best] = _TAKEN
    return len(chosen)


@njit(cache=True, nogil=True)
def keep_current_paths(chosen: PathCodes, found: int, current: PathCodes) -> None:
    """Fill up the `found` chosen paths of an item with its current ones."""
    for kept in current:
        if found < len(chosen) and not contains(chosen[:found], kept):
            chosen[found] = kept
            found += 1


@njit(cache=True, nogil=True, inline="always")
def _size_without(path: int, last: PathCodes, sizes: Int32s) -> np.int32:
    """|c| without the item's own assignment of the last iteration."""
    size = sizes[path]
    for own in last:
        size -= np.int32(own == path)
    without: np.int32 = size
    return without


@njit(cache=True, nogil=True, inline="always")
def _price(penalty: Penalty, size: int) -> float:
    if size < len(penalty.steps):
        known: float = penalty.steps[size]
        return known
    return _penalty_step(penalty.alpha, penalty.degree, size)


@njit(cache=True, nogil=True)
def _penalty_step(alpha: float, degree: float, size: int) -> float:
    step: float = alpha * (float(size + 1) ** degree / degree - float(size) ** degree / degree)
    return step


@njit(cache=True, nogil=True)
def _tabulate(alpha: float, degree: float, steps: NDArray[np.float64]) -> None:
    for size in range(len(steps)):
        steps[size] = _penalty_step(alpha, degree, size)


@njit(cache=True, nogil=True)
def contains(values: PathCodes, wanted: int) -> bool:
    for value in values:  # noqa: SIM110, numba has no any()
        if value == wanted:
            return True
    return False
