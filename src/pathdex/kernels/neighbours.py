"""Candidates from the neighbours of a history's items: summed similarities in one hash table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.hashing import EMPTY, find_slot, new_table
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.select import take, top_k_items
from pathdex.kernels.types import Floats, Int32s, Ints, Mask


class Neighbours(NamedTuple):
    """The neighbours of item i are `items[offsets[i]:offsets[i + 1]]`, with `similarities` beside them."""

    offsets: Ints
    items: Int32s
    similarities: Floats

    @classmethod
    def pack(cls, offsets: Ints, items: Int32s, similarities: Floats) -> Neighbours:
        return cls(as_readonly(offsets, np.int64), as_readonly(items, np.int32), as_readonly(similarities))


NO_NEIGHBOURS = Neighbours.pack(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
"""Of a model without neighbours."""


class Similar(NamedTuple):
    """The neighbours of a history's items."""

    items: Ints
    similarity: Floats
    """The weighted sum over the history's items."""
    position_of: Ints
    """A hash table from items to their positions."""


@njit(cache=True, nogil=True)
def similar_to(neighbours: Neighbours, history: NDArray[np.integer], recency: float) -> Similar:
    """The neighbours of the distinct items of a history.

    The similarity to an item that a others follow counts (1 + a)^-recency, by its latest occurrence.
    """
    total = 0
    latest = new_table(len(history))
    for position in range(len(history)):
        item = history[position]
        total += neighbours.offsets[item + 1] - neighbours.offsets[item]
        slot = find_slot(latest, item)
        latest[slot, 0], latest[slot, 1] = item, position
    position_of = new_table(total)
    found, similarity = np.empty(total, np.int64), np.empty(total, np.float32)
    count = 0
    for item in history:
        slot = find_slot(latest, item)
        position = latest[slot, 1]
        if position == EMPTY:
            continue
        latest[slot, 1] = EMPTY
        weight = np.float32((len(history) - position) ** -recency)
        for entry in range(neighbours.offsets[item], neighbours.offsets[item + 1]):
            other = neighbours.items[entry]
            slot = find_slot(position_of, other)
            if position_of[slot, 0] == EMPTY:
                position_of[slot, 0], position_of[slot, 1] = other, count
                found[count], similarity[count] = other, 0.0
                count += 1
            similarity[position_of[slot, 1]] += weight * neighbours.similarities[entry]
    return Similar(found[:count], similarity[:count], position_of)


@njit(cache=True, nogil=True)
def similarity_of(similar: Similar, items: Ints) -> Floats:
    """The similarity of each item to the history; 0 for an item that is no neighbour."""
    values = np.zeros(len(items), np.float32)
    for i in range(len(items)):
        slot = find_slot(similar.position_of, items[i])
        if similar.position_of[slot, 0] != EMPTY:
            values[i] = similar.similarity[similar.position_of[slot, 1]]
    return values


@njit(cache=True, nogil=True)
def join_share(
    similar: Similar,
    items: Ints,
    log_probability: Floats,
    exclude: Int32s,
    mask: Mask,
    share: float,
    candidates: int,
) -> tuple[Ints, Floats]:
    """At most `candidates` items (0: no limit), a `share` of them from neighbours; without a limit these are added."""
    size = len(items) if candidates == 0 else min(len(items), candidates)
    reserved = int(share * size)
    if reserved:
        limit = candidates if candidates else len(items) + reserved
        return join_neighbours(similar, items, log_probability, exclude, mask, reserved, limit)
    if candidates:
        kept = top_k_items(items, log_probability, candidates)
        return take(items, kept), take(log_probability, kept)
    return items, log_probability


@njit(cache=True, nogil=True)
def add_similarity(prior: Floats, similarity: Floats, weight: float, smoothing: float) -> None:
    """prior += weight log(smoothing + similarity), in place."""
    for i in range(len(prior)):
        prior[i] += np.float32(weight) * np.log(similarity[i] + np.float32(smoothing))


@njit(cache=True, nogil=True, inline="always")
def join_neighbours(
    similar: Similar, items: Ints, log_probability: Floats, exclude: Int32s, mask: Mask, reserved: int, candidates: int
) -> tuple[Ints, Floats]:
    """At most `candidates` items: those from paths and, in `reserved` places, the most similar of the others.

    A joined item that no path led to gets the lowest log probability of those found. Places that the similar items do
    not fill go back to the items from paths.
    """
    by_paths = take(items, top_k_items(items, log_probability, candidates - reserved))
    joining = _most_similar(similar, by_paths, exclude, mask, reserved)
    position_of = new_table(len(joining))
    for position in range(len(joining)):
        slot = find_slot(position_of, joining[position])
        position_of[slot, 0], position_of[slot, 1] = joining[position], position
    lowest = log_probability[0] if len(items) else np.float32(0.0)
    for one in log_probability:
        lowest = min(lowest, one)
    joined = np.empty(len(joining), np.float32)
    for position in range(len(joining)):
        joined[position] = lowest
    others, count = np.empty(len(items), np.int64), 0
    for i in range(len(items)):
        slot = find_slot(position_of, items[i])
        if position_of[slot, 0] == EMPTY:
            others[count] = i
            count += 1
        else:
            joined[position_of[slot, 1]] = log_probability[i]
    others = others[:count]
    best = top_k_items(take(items, others), take(log_probability, others), candidates - len(joining))
    chosen = np.empty(len(best) + len(joining), np.int64)
    scores = np.empty(len(chosen), np.float32)
    for i in range(len(best)):
        chosen[i], scores[i] = items[others[best[i]]], log_probability[others[best[i]]]
    for i in range(len(joining)):
        chosen[len(best) + i], scores[len(best) + i] = joining[i], joined[i]
    return chosen, scores


@njit(cache=True, nogil=True, inline="always")
def _most_similar(similar: Similar, candidates: Ints, exclude: Int32s, mask: Mask, k: int) -> Ints:
    """The k eligible items most similar to the history that are not candidates yet; ties by item."""
    left_out = new_table(len(candidates) + len(exclude))
    for item in candidates:
        left_out[find_slot(left_out, item), 0] = item
    for item in exclude:
        left_out[find_slot(left_out, item), 0] = item
    kept, count = np.empty(len(similar.items), np.int64), 0
    for position in range(len(similar.items)):
        item = similar.items[position]
        if (len(mask) == 0 or mask[item]) and left_out[find_slot(left_out, item), 0] == EMPTY:
            kept[count] = position
            count += 1
    kept = kept[:count]
    best = top_k_items(take(similar.items, kept), take(similar.similarity, kept), k)
    return take(similar.items, take(kept, best))
