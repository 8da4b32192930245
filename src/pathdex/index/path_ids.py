"""Path codes as small consecutive numbers, so that |c| of Algorithm 2 is an array over the paths that occur.

The M-step reads |c| of every candidate of every item in every iteration. One pass through a hash table here lets all of
them read an array. Numbers follow the order of the codes, so that paths with a common prefix, as an item's candidates
often have, lie side by side in it. The table grows with the distinct paths that occur, never with K^D.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from pathdex.index.checks import Codes, Scores
from pathdex.kernels.hashing import EMPTY, find_slot, new_table

Numbers: TypeAlias = NDArray[np.int32]


class NumberedPaths(NamedTuple):
    """A score table in path numbers, its rows in another order."""

    codes: Codes
    """The code of each number, ascending."""
    candidates: Numbers
    """(scored item, candidate path) with -1 behind the last path that has a score."""
    scores: Scores
    """(scored item, candidate path)"""
    current: Numbers
    """(item, path)"""


def number_paths(codes: Codes, scores: Scores, current: Codes, order: Codes, num_scored: int) -> NumberedPaths:
    """Number all paths that occur. Row i of the result is row `order[i]`; from `num_scored` on, rows have no scores."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    candidates = np.full((num_scored, codes.shape[1]), EMPTY, np.int32)
    moved_scores = np.empty(candidates.shape, np.float32)
    kept = np.empty(current.shape, np.int32)
    found = _number_as_found(codes, scores, current, place, candidates, moved_scores, kept)
    rank = np.empty(len(found), np.int32)
    rank[np.argsort(found)] = np.arange(len(found))
    _renumber(candidates, rank)
    _renumber(kept, rank)
    found.sort()
    return NumberedPaths(found, candidates, moved_scores, kept)


@njit(cache=True, nogil=True)
def _number_as_found(
    codes: Codes,
    scores: Scores,
    current: Codes,
    place: Codes,
    candidates: Numbers,
    moved_scores: Scores,
    kept: Numbers,
) -> Codes:
    number_of = new_table(1024)
    total = 0
    for v in range(len(codes)):
        i = place[v]
        number_of = _with_room(number_of, total + codes.shape[1] + current.shape[1])
        if i < len(candidates):
            moved_scores[i] = scores[v]
            for c in range(codes.shape[1]):
                if scores[v, c] > 0:
                    candidates[i, c] = _number(number_of, codes[v, c], total)
                    total += candidates[i, c] == total
        for j in range(current.shape[1]):
            kept[i, j] = _number(number_of, current[v, j], total)
            total += kept[i, j] == total
    found = np.empty(total, np.int64)
    for entry in number_of:
        if entry[0] != EMPTY:
            found[entry[1]] = entry[0]
    return found


@njit(cache=True, nogil=True, parallel=True)
def _renumber(numbers: Numbers, rank: Numbers) -> None:
    for i in prange(len(numbers)):
        for c in range(numbers.shape[1]):
            if numbers[i, c] != EMPTY:
                numbers[i, c] = rank[numbers[i, c]]


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
