"""Paths to candidates to the best n: gather the items on the paths, keep the most probable, rerank."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from pathdex.kernels.compact import COMPACT_LINES, rule_out
from pathdex.kernels.exp import fast_exp, fast_log
from pathdex.kernels.gemm import dot
from pathdex.kernels.hashing import find_item, new_slots
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.prefetch import ROW_LINES, prefetch_lines, prefetch_outer
from pathdex.kernels.select import best_items, take, top_k_items
from pathdex.kernels.types import Floats, Int32s, Ints, Mask

ALL_ITEMS = as_readonly(np.empty(0), np.bool_)
"""The mask that allows every item."""
NO_ITEMS = as_readonly(np.empty(0), np.int32)
"""Nothing to exclude."""
NO_COMPACT = as_readonly(np.empty((0, 0)))
"""No compact rows: all candidates are scored in floats."""
PREFETCH_AHEAD = 12
"""Items between a prefetch and its use."""
PATH_LINES = 2
"""Cache lines of the items of a path to prefetch."""
MAX_LOG_RATIO = np.float32(40.0)
"""Probabilities are added relative to the first as long as they are at most exp of this times larger."""
RULE_OUT = 2
"""Compact rows are read first if there are at least this many times n candidates."""


class PathItems(NamedTuple):
    """The items on each path in use."""

    starts: Ints
    ends: Ints
    """The items on path i are `items[starts[i]:ends[i]]`."""
    items: Int32s
    log_shares: Floats
    """log p(v | c) of each entry of `items`."""

    @classmethod
    def pack(cls, starts: Ints, ends: Ints, items: Int32s, log_shares: Floats) -> PathItems:
        places = as_readonly(starts, np.int64), as_readonly(ends, np.int64)
        return cls(*places, as_readonly(items, np.int32), as_readonly(log_shares))


class Gathered(NamedTuple):
    """The distinct items of a query in one hash table: excluded ones first, then those on paths, then free places."""

    items: Ints
    log_probability: Floats
    """log sum_j p(c_j | x) p(v | c_j) of the items on paths."""
    excluded: int
    """The number of excluded items."""
    end: int
    """The number of items, excluded ones included."""
    slots: Int32s
    """See `pathdex.kernels.hashing`."""
    shift: np.uint32


@njit(cache=True, nogil=True)
def gather_items(
    on_paths: PathItems, positions: Ints, log_p: Floats, exclude: Int32s, mask: Mask, compact: Floats
) -> tuple[Ints, Floats]:
    """The items of `gather` and their log probabilities."""
    found = gather(on_paths, positions, log_p, exclude, mask, compact, 0)
    return found.items[found.excluded : found.end], found.log_probability[found.excluded : found.end]


@njit(cache=True, nogil=True)
def gather(
    on_paths: PathItems, positions: Ints, log_p: Floats, exclude: Int32s, mask: Mask, compact: Floats, room: int
) -> Gathered:
    """The distinct eligible items on paths, given by position, in the order of their first path.

    An empty `mask` allows all items. The items' rows of `compact`, if any, are prefetched.
    """
    total = len(exclude) + room
    for path in positions:
        first = on_paths.starts[path]
        total += on_paths.ends[path] - first
        prefetch_lines(on_paths.items, first, PATH_LINES)
        prefetch_lines(on_paths.log_shares, first, PATH_LINES)
    # A slot holds 1 + the position of an item.
    slots, shift = new_slots(total)
    items = np.empty(total, np.int64)
    first_score, sums = np.empty(total, np.float32), np.ones(total - room, np.float32)
    count = 0
    for item in exclude:
        slot = find_item(slots, shift, items, item)
        if slots[slot] == 0:
            items[count] = item
            count += 1
            slots[slot] = count
    excluded = count
    for rank in range(len(positions)):
        first, end = on_paths.starts[positions[rank]], on_paths.ends[positions[rank]]
        on_path, shares, path_score = on_paths.items[first:end], on_paths.log_shares[first:end], log_p[rank]
        for i in range(len(on_path)):
            item = on_path[i]
            if len(mask) and not mask[item]:
                continue
            score = path_score + shares[i]
            slot = find_item(slots, shift, items, item)
            position = slots[slot] - 1
            if position < 0:
                if len(compact):
                    prefetch_outer(compact, item, COMPACT_LINES)
                items[count], first_score[count] = item, score
                count += 1
                slots[slot] = count
            elif position >= excluded:
                _add_probability(first_score, sums, position, score)
    scores, sums = first_score[excluded:count], sums[excluded:count]
    for i in range(len(scores)):
        scores[i] += fast_log(sums[i])
    return Gathered(items, first_score, excluded, count, slots, shift)


@njit(cache=True, nogil=True)
def _add_probability(first: Floats, sums: Floats, position: int, score: np.float32) -> None:
    """Add exp(score) to a sum of probabilities, which is held as exp(first) times a number."""
    more = score - first[position]
    if more < MAX_LOG_RATIO:
        sums[position] += fast_exp(more)
    else:
        sums[position] = sums[position] * fast_exp(-more) + np.float32(1.0)
        first[position] = score


@njit(cache=True, nogil=True, inline="always")
def most_probable(items: Ints, log_probability: Floats, candidates: int) -> tuple[Ints, Floats]:
    """At most `candidates` of the items, the most probable; ties by item."""
    kept = top_k_items(items, log_probability, candidates)
    return take(items, kept), take(log_probability, kept)


@njit(cache=True, nogil=True)
def rerank(table: Floats, compact: Floats, user: Floats, items: Ints, prior: Floats, n: int) -> tuple[Ints, Floats]:
    """The best n items by x . y_v + b_v + prior, best first, ties by item.

    The last columns of `table` (item, ...) hold y_v and b_v; `compact` are their `compact_items`, or empty.
    """
    if len(compact) and len(items) >= RULE_OUT * n:
        kept = rule_out(compact, user, items, prior, n)
        items, prior = take(items, kept), take(prior, kept)
    return best_items(items, score_items(table, user, items, prior), n)


@njit(cache=True, nogil=True)
def score_items(table: Floats, user: Floats, items: Ints, prior: Floats) -> Floats:
    """x . y_v + b_v + prior of each item."""
    dim, first = len(user), table.shape[1] - len(user) - 1
    scores = np.empty(len(items), np.float32)
    # Separate from the selection, so that the rows of several items are on their way from memory at once.
    for i in range(min(PREFETCH_AHEAD, len(items))):
        prefetch_lines(table, items[i], ROW_LINES)
    for i in range(len(items)):
        if i + PREFETCH_AHEAD < len(items):
            prefetch_lines(table, items[i + PREFETCH_AHEAD], ROW_LINES)
        row = table[items[i]][first:]
        scores[i] = dot(row[:dim], user) + row[dim] + prior[i]
    return scores


@njit(cache=True, nogil=True)
def dot_items(table: Floats, user: Floats, items: Ints) -> Floats:
    """x . y_v of each item."""
    dim, first = len(user), table.shape[1] - len(user) - 1
    products = np.empty(len(items), np.float32)
    for i in range(len(items)):
        products[i] = dot(table[items[i]][first : first + dim], user)
    return products
