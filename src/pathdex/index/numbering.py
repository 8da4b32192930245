"""Path codes as small consecutive numbers, so that |c| of Algorithm 2 is an array over the paths that occur.

The M-step reads |c| of every candidate of every item in every iteration. One pass through a hash table here lets all of
them read an array that fits a cache, and the table grows with the distinct paths, never with K^D.
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
def number_paths(codes: Codes, scores: Scores, current: Codes) -> tuple[Codes, Numbers, Numbers]:
    """Number all paths that occur: the code of each number, and both arrays in numbers (-1 where there is no score)."""
    number_of = new_table(1024)
    total = 0
    candidates = np.full(codes.shape, EMPTY, np.int32)
    kept = np.empty(current.shape, np.int32)
    for v in range(len(codes)):
        if 4 * (total + codes.shape[1] + current.shape[1]) > len(number_of):
            number_of = _grown(number_of)
        for c in range(codes.shape[1]):
            if codes[v, c] != EMPTY and scores[v, c] > 0:
                candidates[v, c] = _number(number_of, codes[v, c], total)
                total += candidates[v, c] == total
        for j in range(current.shape[1]):
            kept[v, j] = _number(number_of, current[v, j], total)
            total += kept[v, j] == total
    path_codes = np.empty(total, np.int64)
    for slot in range(len(number_of)):
        if number_of[slot, 0] != EMPTY:
            path_codes[number_of[slot, 1]] = number_of[slot, 0]
    return path_codes, candidates, kept


@njit(cache=True, nogil=True)
def _number(number_of: Codes, code: int, new: int) -> int:
    slot = find_slot(number_of, code)
    if number_of[slot, 0] == EMPTY:
        number_of[slot, 0], number_of[slot, 1] = code, new
    number: int = number_of[slot, 1]
    return number


@njit(cache=True, nogil=True)
def _grown(table: Codes) -> Codes:
    larger = new_table(len(table))
    for entry in table:
        if entry[0] != EMPTY:
            larger[find_slot(larger, entry[0])] = entry
    return larger
