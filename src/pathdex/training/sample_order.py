"""The random order of an epoch's samples, drawn in windows of blocks where the data is large.

Whether data is large is decided by its size, never by the machine, so that a seed gives the same model everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pathdex.storage.scratch import permutation, scratch_array

LARGE = 2**21
"""Interactions above which samples are visited in windows. Part of the results, as a seed is."""
WINDOW = 2**18
"""Interactions that are shuffled together: neighbours in the order are at most so far apart in what has to be read."""
SAMPLE_BLOCK = 2**10
"""Consecutive interactions that are in the same window; a window has blocks from everywhere in the data."""


def is_large(count: int) -> bool:
    """Whether so many interactions are visited in windows."""
    return count > LARGE


def draw_order(count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """The numbers below `count` in random order: a permutation if there are few, windows of random blocks otherwise."""
    return windowed_order(count, generator) if is_large(count) else permutation(count, generator)


def windowed_order(count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """The numbers below `count`: shuffled within windows, each of which joins random blocks of consecutive numbers."""
    order: NDArray[np.int64] = scratch_array(count, np.int64)
    numbers = generator.permutation(-(-count // SAMPLE_BLOCK))
    begin = 0
    for window in np.array_split(numbers, -(-count // WINDOW)):
        taken = (np.sort(window)[:, None] * SAMPLE_BLOCK + np.arange(SAMPLE_BLOCK)).ravel()
        taken = taken[taken < count]
        order[begin : begin + len(taken)] = generator.permutation(taken)
        begin += len(taken)
    return order


def draw_few(count: int, number: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """`number` distinct numbers below `count` at random, or all of them."""
    if is_large(count):
        return generator.choice(count, number, replace=False)
    return permutation(count, generator)[:number].copy()
