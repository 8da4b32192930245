"""Consecutive ids of paths, so that |c| of Algorithm 2 is an array over the paths that occur.

The M-step reads |c| of every candidate path of every item in every iteration. One pass through a hash table here turns
all these reads into array lookups. Ids follow the order of the codes, so paths with a common prefix, which an item's
candidate paths often have, are neighbours in memory. The table grows with the distinct paths that occur, not with K^D.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit

from pathdex.kernels.hashing import EMPTY, ROWS_PER_RANGE, find_slot, new_table
from pathdex.kernels.threads import run_ranges
from pathdex.kernels.types import Floats, Int32s, Ints


class PathIdTable(NamedTuple):
    """A score table in path ids, with its rows in another order."""

    codes: Ints
    """The code of each id, ascending."""
    candidate_paths: Int32s
    """(scored item, candidate path), padded with -1."""
    scores: Floats
    """(scored item, candidate path)"""
    current: Int32s
    """(item, path)"""


def assign_path_ids(codes: Ints, scores: Floats, current: Ints, order: Ints, num_scored: int) -> PathIdTable:
    """Give every path that occurs an id. Row i of the result is row `order[i]`; the first `num_scored` have scores."""
    row_of = np.empty_like(order)
    row_of[order] = np.arange(len(order))
    candidate_paths = np.full((num_scored, codes.shape[1]), EMPTY, np.int32)
    moved = np.empty(candidate_paths.shape, np.float32)
    kept = np.empty(current.shape, np.int32)
    found = _ids_as_found(codes, scores, current, row_of, candidate_paths, moved, kept)
    rank = np.empty(len(found), np.int32)
    rank[np.argsort(found)] = np.arange(len(found))
    for ids in (candidate_paths, kept):
        run_ranges(partial(_replace_ids, ids, rank), len(ids), least=ROWS_PER_RANGE)
    found.sort()
    return PathIdTable(found, candidate_paths, moved, kept)


@njit(cache=True, nogil=True)
def _ids_as_found(
    codes: Ints, scores: Floats, current: Ints, row_of: Ints, candidate_paths: Int32s, moved: Floats, kept: Int32s
) -> Ints:
    id_of = new_table(1024)
    total = 0
    for v in range(len(codes)):
        i = row_of[v]
        id_of = _with_room(id_of, total + codes.shape[1] + current.shape[1])
        if i < len(candidate_paths):
            for c in range(codes.shape[1]):
                moved[i, c] = scores[v, c]
                if scores[v, c] > 0:
                    candidate_paths[i, c] = _id(id_of, codes[v, c], total)
                    total += candidate_paths[i, c] == total
        for j in range(current.shape[1]):
            kept[i, j] = _id(id_of, current[v, j], total)
            total += kept[i, j] == total
    found = np.empty(total, np.int64)
    for slot in range(len(id_of)):
        if id_of[slot, 0] != EMPTY:
            found[id_of[slot, 1]] = id_of[slot, 0]
    return found


@njit(cache=True, nogil=True)
def _replace_ids(ids: Int32s, rank: Int32s, first: int, end: int) -> None:
    for i in range(first, end):
        for c in range(ids.shape[1]):
            if ids[i, c] != EMPTY:
                ids[i, c] = rank[ids[i, c]]


@njit(cache=True, nogil=True)
def _id(id_of: Ints, code: int, new: int) -> int:
    """The id of a code; a code without one gets `new`."""
    slot = find_slot(id_of, code)
    if id_of[slot, 0] == EMPTY:
        id_of[slot, 0], id_of[slot, 1] = code, new
    known: int = id_of[slot, 1]
    return known


@njit(cache=True, nogil=True)
def _with_room(table: Ints, entries: int) -> Ints:
    """The table, or a larger copy if `entries` would fill more than half of it."""
    if 2 * entries <= len(table):
        return table
    larger = new_table(entries)
    for old in range(len(table)):
        if table[old, 0] != EMPTY:
            slot = find_slot(larger, table[old, 0])
            larger[slot, 0], larger[slot, 1] = table[old, 0], table[old, 1]
    return larger
