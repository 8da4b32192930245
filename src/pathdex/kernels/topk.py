"""The k largest of many values: quickselect, the selections built on it, and a bounded heap."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.types import Floats, Ints

Score: TypeAlias = float | np.float32


@njit(cache=True, nogil=True)
def kth_largest(values: Floats, count: int, k: int) -> np.float32:
    """The k-th largest of the first `count` values by quickselect, which moves the k largest to the front."""
    low, high, want = 0, count - 1, k - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if want <= j:
            high = j
        elif want >= i:
            low = i
        else:
            break
    found: np.float32 = values[want]
    return found


@njit(cache=True, nogil=True)
def top_k_threshold(values: Floats, count: int, k: int) -> tuple[np.float32, int]:
    """The k-th largest of the first `count` values, and how many values equal to it are among the k largest.

    Reorders the values.
    """
    threshold = kth_largest(values, count, k)
    above = 0
    for i in range(k):
        above += values[i] > threshold
    return threshold, k - above


@njit(cache=True, nogil=True)
def select_top_k(values: Floats, count: int, k: int, floor: np.float32, scratch: Floats, chosen: Ints) -> int:
    """Write the positions of the k largest of the first `count` values to `chosen`, largest first, ties by position.

    Returns their number, which is smaller than k where fewer values are positive. The k largest must be at least
    `floor`; a higher floor saves work. `scratch` and `chosen` need room for `count` entries.
    """
    size = 0
    for i in range(count):
        chosen[size], scratch[size] = i, values[i]
        size += values[i] >= floor and values[i] > 0
    if size > k:
        threshold, ties = top_k_threshold(scratch, size, k)
        kept = 0
        for i in range(size):
            value = values[chosen[i]]
            if value > threshold or (value == threshold and ties > 0):
                ties -= value == threshold
                chosen[kept] = chosen[i]
                kept += 1
        size = k
    _sort_positions(values, chosen, size)
    return size


@njit(cache=True, nogil=True)
def _sort_positions(values: Floats, positions: Ints, size: int) -> None:
    """Sort the first `size` positions by falling value: a stable insertion sort, since they are few."""
    for i in range(1, size):
        position = positions[i]
        value, j = values[position], i
        while j > 0 and values[positions[j - 1]] < value:
            positions[j] = positions[j - 1]
            j -= 1
        positions[j] = position


@njit(cache=True, nogil=True, inline="always")
def _worse(score: Score, item: int | np.int64, other_score: Score, other_item: int | np.int64) -> bool:
    return bool(score < other_score or (score == other_score and item > other_item))


@njit(cache=True, nogil=True)
def heap_push(items: NDArray[np.integer], scores: Floats, size: int, item: int | np.int64, score: Score) -> int:
    """Push an item onto a bounded heap with the worst on top; return the new size. NaN counts as -inf."""
    if score != score:
        score = np.float32(-np.inf)
    if size < len(items):
        position = size
        while position > 0:
            parent = (position - 1) // 2
            if not _worse(score, item, scores[parent], items[parent]):
                break
            items[position], scores[position] = items[parent], scores[parent]
            position = parent
        items[position], scores[position] = item, score
        return size + 1
    if not _worse(scores[0], items[0], score, item):
        return size
    position = 0
    while 2 * position + 1 < size:
        child = 2 * position + 1
        if child + 1 < size and _worse(scores[child + 1], items[child + 1], scores[child], items[child]):
            child += 1
        if not _worse(scores[child], items[child], score, item):
            break
        items[position], scores[position] = items[child], scores[child]
        position = child
    items[position], scores[position] = item, score
    return size
