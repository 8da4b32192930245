"""Paths to candidates to the best n: the items on the paths, filters, the budget, the final score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.arithmetic import Floats, dot
from pathdex.kernels.beam import Places, Trie, beam_search
from pathdex.kernels.hashing import EMPTY, find_slot, new_table
from pathdex.kernels.prefetch import prefetch_row
from pathdex.kernels.structure import StructureWeights
from pathdex.kernels.topk import kth_largest

Items = NDArray[np.int64]
EXCLUDED = -2
AHEAD = 12
"""Rows that are asked for before they are needed."""


class ItemData(NamedTuple):
    """What a query reads of the items."""

    offsets: Places
    """The items on path i are `items[offsets[i]:offsets[i + 1]]`."""
    items: NDArray[np.int32]
    log_shares: Floats
    """log p(v | c), beside `items`."""
    table: Floats
    """(item, [input vector | output vector | bias]); input and output may be one."""


@njit(cache=True, nogil=True)
def find_candidates(
    weights: StructureWeights,
    trie: Trie,
    data: ItemData,
    user: Floats,
    exclude: NDArray[np.int32],
    mask: NDArray[np.bool_],
    width: int,
    least: int,
    limit: int,
) -> tuple[bool, Items, Floats]:
    """The eligible items on the paths that a beam finds, and log sum_j p(c_j | x) p(v | c_j) of each.

    An empty `mask` allows all items. Where fewer than `least` are eligible, the beam doubles, until every path has been
    followed, or until it would be wider than `limit`: then the first result is False and the search has failed.
    """
    paths = len(data.offsets) - 1
    while True:
        places, log_p = beam_search(weights, trie, user, min(width, paths), weights.depth)
        items, log_probability = _gather(data, places, log_p, exclude, mask)
        if len(items) >= least or width >= paths:
            return True, items, log_probability
        if 2 * width > limit:
            return False, items, log_probability
        width *= 2


@njit(cache=True, nogil=True)
def _gather(
    data: ItemData, places: Places, log_p: Floats, exclude: NDArray[np.int32], mask: NDArray[np.bool_]
) -> tuple[Items, Floats]:
    total = 0
    for place in places:
        total += data.offsets[place + 1] - data.offsets[place]
    position_of = new_table(total + len(exclude))
    for item in exclude:
        slot = find_slot(position_of, item)
        position_of[slot, 0], position_of[slot, 1] = item, EXCLUDED
    found, scores = np.empty(total, np.int64), np.empty(total, np.float32)
    count = 0
    for rank in range(len(places)):
        for posting in range(data.offsets[places[rank]], data.offsets[places[rank] + 1]):
            item = data.items[posting]
            if len(mask) and not mask[item]:
                continue
            score = log_p[rank] + data.log_shares[posting]
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
def most_probable(items: Items, log_probability: Floats, budget: int) -> tuple[Items, Floats]:
    """At most `budget` of the candidates, the most probable ones; ties by item."""
    kept = best_places(items, log_probability, budget)
    return items[kept], log_probability[kept]


@njit(cache=True, nogil=True)
def rerank(data: ItemData, user: Floats, items: Items, prior: Floats, n: int) -> tuple[Items, Floats]:
    """The best n candidates by x . y_v + b_v plus what is known of each beforehand, best first, ties by item."""
    scores = np.empty(len(items), np.float32)
    # Apart from the selection, so that the rows of several items are on their way from memory at once.
    for i in range(len(items)):
        if i + AHEAD < len(items):
            prefetch_row(data.table, items[i + AHEAD])  # type: ignore[call-arg]
        row = data.table[items[i]]
        last = len(row) - 1
        scores[i] = dot(row[last - len(user) : last], user) + row[last] + prior[i]
    for i in range(len(items)):
        if np.isnan(scores[i]):
            scores[i] = -np.inf
    best = best_places(items, scores, n)
    order = best[np.argsort(items[best], kind="mergesort")]
    order = order[np.argsort(-scores[order], kind="mergesort")]
    return items[order], scores[order]


@njit(cache=True, nogil=True)
def best_places(items: Items, scores: Floats, n: int) -> Places:
    """The places of the n highest scores, in no order; ties by item."""
    if len(scores) <= n:
        return np.arange(len(scores))
    cut = kth_largest(scores.copy(), len(scores), n)
    best = np.empty(n, np.int64)
    count = 0
    for i in range(len(scores)):
        if scores[i] > cut:
            best[count] = i
            count += 1
    tied = np.flatnonzero(scores == cut)
    if len(tied) > n - count:
        tied = tied[np.argsort(items[tied])]
    best[count:] = tied[: n - count]
    return best
