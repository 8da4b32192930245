"""Paths to candidates to the best n: gather the items on the paths, keep the most probable, rerank."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from pathdex.kernels.beam import Trie, beam_search
from pathdex.kernels.gemm import dot
from pathdex.kernels.hashing import EMPTY, find_slot, new_table
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.prefetch import prefetch_row
from pathdex.kernels.structure import StructureWeights
from pathdex.kernels.topk import top_k_items
from pathdex.kernels.types import Floats, Int32s, Ints, Mask

ALL_ITEMS = as_readonly(np.empty(0), np.bool_)
"""The mask that allows every item."""
NO_ITEMS = as_readonly(np.empty(0), np.int32)
"""Nothing to exclude."""
EXCLUDED = -2
PREFETCH_AHEAD = 12
"""Items between a prefetch and its use."""


class PathItems(NamedTuple):
    """The items on each path in use."""

    offsets: Ints
    """The items on path i are `items[offsets[i]:offsets[i + 1]]`."""
    items: Int32s
    log_shares: Floats
    """log p(v | c) of each entry of `items`."""

    @classmethod
    def pack(cls, offsets: Ints, items: Int32s, log_shares: Floats) -> PathItems:
        return cls(as_readonly(offsets, np.int64), as_readonly(items, np.int32), as_readonly(log_shares))


@njit(cache=True, nogil=True)
def find_candidates(
    weights: StructureWeights,
    trie: Trie,
    on_paths: PathItems,
    user: Floats,
    exclude: Int32s,
    mask: Mask,
    beam: int,
    min_candidates: int,
    max_beam: int,
) -> tuple[bool, Ints, Floats]:
    """The eligible items on the paths that a beam finds, and log sum_j p(c_j | x) p(v | c_j) of each.

    An empty `mask` allows all items. If fewer than `min_candidates` are eligible, the beam doubles until there are
    enough or it holds every path. The first result is False if the beam would have to exceed `max_beam`.
    """
    paths = len(on_paths.offsets) - 1
    while True:
        positions, log_p = beam_search(weights, trie, user, min(beam, paths), weights.depth)
        items, log_probability = gather_items(on_paths, positions, log_p, exclude, mask)
        if len(items) >= min_candidates or beam >= paths:
            return True, items, log_probability
        if 2 * beam > max_beam:
            return False, items, log_probability
        beam *= 2


@njit(cache=True, nogil=True)
def gather_items(
    on_paths: PathItems, positions: Ints, log_p: Floats, exclude: Int32s, mask: Mask
) -> tuple[Ints, Floats]:
    """The distinct eligible items on paths, given by position, in the order of their first path.

    Returns log sum_j p(c_j | x) p(v | c_j) of each. An empty `mask` allows all items.
    """
    total = 0
    for path in positions:
        total += on_paths.offsets[path + 1] - on_paths.offsets[path]
    position_of = new_table(total + len(exclude))
    for item in exclude:
        slot = find_slot(position_of, item)
        position_of[slot, 0], position_of[slot, 1] = item, EXCLUDED
    found, scores = np.empty(total, np.int64), np.empty(total, np.float32)
    count = 0
    for rank in range(len(positions)):
        for posting in range(on_paths.offsets[positions[rank]], on_paths.offsets[positions[rank] + 1]):
            item = on_paths.items[posting]
            if len(mask) and not mask[item]:
                continue
            score = log_p[rank] + on_paths.log_shares[posting]
            slot = find_slot(position_of, item)
            if position_of[slot, 0] == EMPTY:
                position_of[slot, 0], position_of[slot, 1] = item, count
                found[count], scores[count] = item, score
                count += 1
            elif position_of[slot, 1] != EXCLUDED:
                position = position_of[slot, 1]
                high, low = max(scores[position], score), min(scores[position], score)
                scores[position] = high + np.log1p(np.exp(low - high))
    return found[:count], scores[:count]


@njit(cache=True, nogil=True)
def most_probable(items: Ints, log_probability: Floats, candidates: int) -> tuple[Ints, Floats]:
    """At most `candidates` of the items, the most probable; ties by item."""
    kept = top_k_items(items, log_probability, candidates)
    return items[kept], log_probability[kept]


@njit(cache=True, nogil=True)
def rerank(table: Floats, user: Floats, items: Ints, prior: Floats, n: int) -> tuple[Ints, Floats]:
    """The best n items by x . y_v + b_v + prior, best first, ties by item.

    The last columns of `table` (item, ...) hold y_v and b_v.
    """
    scores = np.empty(len(items), np.float32)
    # Separate from the selection, so that the rows of several items are on their way from memory at once.
    for i in range(len(items)):
        if i + PREFETCH_AHEAD < len(items):
            prefetch_row(table, items[i + PREFETCH_AHEAD])
        row = table[items[i]]
        last = len(row) - 1
        scores[i] = dot(row[last - len(user) : last], user) + row[last] + prior[i]
    for i in range(len(items)):
        if np.isnan(scores[i]):
            scores[i] = -np.inf
    best = top_k_items(items, scores, n)
    order = best[np.argsort(items[best], kind="mergesort")]
    order = order[np.argsort(-scores[order], kind="mergesort")]
    return items[order], scores[order]
