"""Selecting the largest of many values, and a bounded heap."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.arithmetic import Floats

Ints: TypeAlias = NDArray[np.int64]
Score: TypeAlias = float | np.float32


@njit(cache=True, nogil=True)
def kth_largest(values: Floats, count: int, k: int) -> np.float32:
    """The k-th largest of the first `count` values by quickselect, which reorders them."""
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
def _worse(score: Score, item: int, other_score: Score, other_item: int) -> bool:
    return bool(score < other_score or (score == other_score and item > other_item))


@njit(cache=True, nogil=True)
def heap_push(items: Ints, scores: Floats, size: int, item: int, score: Score) -> int:
    """Push an item onto a bounded heap with the worst on top; return the new size. NaN counts as -inf."""
    if score != score:
        score = -np.inf
    if size < len(items):
        place = size
        while place > 0:
            parent = (place - 1) // 2
            if not _worse(score, item, scores[parent], items[parent]):
                break
            items[place], scores[place] = items[parent], scores[parent]
            place = parent
        items[place], scores[place] = item, score
        return size + 1
    if not _worse(scores[0], items[0], score, item):
        return size
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _worse(scores[child + 1], items[child + 1], scores[child], items[child]):
            child += 1
        if not _worse(scores[child], items[child], score, item):
            break
        items[place], scores[place] = items[child], scores[child]
        place = child
    items[place], scores[place] = item, score
    return size
