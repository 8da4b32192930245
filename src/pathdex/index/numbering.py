"""Path codes as small consecutive numbers, so that |c| of Algorithm 2 is an array over the paths that occur.

The M-step reads |c| of every candidate of every item in every iteration. One pass through a hash table here lets all of
them read an array that fits a cache. The table grows with the distinct paths that occur, never with K^D.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.index.checks import Codes, Scores
from pathdex.index.hashing import EMPTY, find_slot, new_table

Numbers: TypeAlias = NDArray[np.int32]


@njit(cache=True, nogil=True)
def number_paths(
    codes: Codes, scores: Scores, current: Codes, order: Codes, num_scored: int
) -> tuple[Codes, Numbers, Numbers]:
    """Number all paths that occur.

    Returns the code of each number, then in numbers: the first `num_scored` rows of `codes[order]`, with -1 where there
    is no score, and `current[order]`.
    """
    number_of = new_table(1024)
    total = 0
    candidates = np.full((num_scored, codes.shape[1]), EMPTY, np.int32)
    kept = np.empty(current.shape, np.int32)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    for v in range(len(codes)):
        i = place[v]
        number_of = _with_room(number_of, total + codes.shape[1] + current.shape[1])
        for c in range(codes.shape[1]):
            if scores[v, c] > 0:
                candidates[i, c] = _number(number_of, codes[v, c], total)
                total += candidates[i, c] == total
        for j in range(current.shape[1]):
            kept[i, j] = _number(number_of, current[v, j], total)
            total += kept[i, j] == total
    path_codes = np.empty(total, np.int64)
    for entry in number_of:
        if entry[0] != EMPTY:
            path_codes[entry[1]] = entry[0]
    return path_codes, candidates, kept


@njit(cache=True, nogil=True)
def _number(number_of: Codes, code: int, new: int) -> int:
    slot = find_slot(number_of, code)
    if number_of[slot, 0] == EMPTY:
        number_of[slot, 0], number_of[slot, 1] = code, new
    number: int = number_of[slot, 1]
    return number


@njit(cache=True, nogil=True)
def _with_room(table: Codes, entries: int) -> Codes:
    """The table, or a copy of twice the size where `entries` would fill more than half of it."""
    if 2 * entries <= len(table):
        return table
    larger = new_table(entries)
    for entry in table:
        if entry[0] != EMPTY:
            larger[find_slot(larger, entry[0])] = entry
    return larger
