"""Candidates from the neighbours of a history's items.

Similarities are added up in the hash table that holds the items on paths, so that every item has one position for all
that is known about it, and choosing among them needs no further lookups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.candidates import Gathered
from pathdex.kernels.exp import fast_log
from pathdex.kernels.hashing import EMPTY, find_item, find_slot, new_slots, new_table
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.select import take, top_k_items
from pathdex.kernels.types import Floats, Int32s, Ints, Mask

NONE_HIDDEN = as_readonly(np.empty(0), np.bool_)


class Neighbours(NamedTuple):
    """The neighbours of item i are `items[offsets[i]:offsets[i + 1]]`, with `similarities` beside them."""

    offsets: Ints
    items: Int32s
    similarities: Floats
    hidden: Mask = NONE_HIDDEN
    """Items that have no neighbours and are no neighbours, whatever the lists say; empty if there are none. A live
    model hides items that were removed, and what took their places, until the lists are written again."""

    @classmethod
    def pack(cls, offsets: Ints, items: Int32s, similarities: Floats, hidden: Mask = NONE_HIDDEN) -> Neighbours:
        lists = as_readonly(offsets, np.int64), as_readonly(items, np.int32), as_readonly(similarities)
        return cls(*lists, as_readonly(hidden, np.bool_))


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
def recency_weights(history: NDArray[np.integer], recency: float) -> Floats:
    """(1 + a)^-recency at the first occurrence of each item, where a others follow its latest one; 0 elsewhere."""
    weights = np.zeros(len(history), np.float32)
    read, shift = new_slots(len(history))
    for i in range(len(history)):
        slot = find_item(read, shift, history, history[i])
        if read[slot] == 0:
            read[slot] = i + 1
        weights[read[slot] - 1] = (len(history) - i) ** -recency
    return weights


@njit(cache=True, nogil=True, inline="always")
def _is_hidden(neighbours: Neighbours, item: int | np.int32) -> bool:
    return len(neighbours.hidden) > 0 and neighbours.hidden[item]


@njit(cache=True, nogil=True)
def neighbour_entries(neighbours: Neighbours, history: NDArray[np.integer]) -> int:
    """How many entries the lists of a history's items have together; 0 if the model has no neighbours."""
    total = 0
    if len(neighbours.offsets):
        for item in history:
            if not _is_hidden(neighbours, item):
                total += neighbours.offsets[item + 1] - neighbours.offsets[item]
    return total


@njit(cache=True, nogil=True)
def similar_to(neighbours: Neighbours, history: NDArray[np.integer], recency: float) -> Similar:
    """The neighbours of the distinct items of a history, weighted by `recency_weights`."""
    total = neighbour_entries(neighbours, history)
    position_of, weights = new_table(total), recency_weights(history, recency)
    found, similarity = np.empty(total, np.int64), np.empty(total, np.float32)
    count = 0
    for i in range(len(history)):
        item = history[i]
        if weights[i] == 0 or _is_hidden(neighbours, item):
            continue
        for entry in range(neighbours.offsets[item], neighbours.offsets[item + 1]):
            other = neighbours.items[entry]
            if _is_hidden(neighbours, other):
                continue
            slot = find_slot(position_of, other)
            if position_of[slot, 0] == EMPTY:
                position_of[slot, 0], position_of[slot, 1] = other, count
                found[count], similarity[count] = other, 0.0
                count += 1
            similarity[position_of[slot, 1]] += weights[i] * neighbours.similarities[entry]
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
def add_similarity(prior: Floats, similarity: Floats, weight: float, smoothing: float) -> None:
    """prior += weight log(smoothing + similarity), in place."""
    factor, least = np.float32(weight), np.float32(smoothing)
    for i in range(len(prior)):
        prior[i] += factor * fast_log(similarity[i] + least)


@njit(cache=True, nogil=True)
def join_neighbours(
    found: Gathered,
    neighbours: Neighbours,
    history: Int32s,
    recency: float,
    mask: Mask,
    share: float,
    candidates: int,
) -> tuple[Ints, Floats, Floats]:
    """At most `candidates` items: those on paths and, as a `share` of them, the most similar of the others.

    Without a limit (`candidates` 0) the share of the items on paths is added to them. A joined item that no path led to
    gets the lowest log probability of those found. Places that the similar items do not fill go back to the items on
    paths. `found` has room for the `neighbour_entries` of the history. Returns items, log probabilities and
    similarities, which are 0 for a model without neighbours.
    """
    first, end = found.excluded, found.end
    items, log_probability = found.items, found.log_probability
    if len(neighbours.offsets) == 0:
        if candidates == 0 or candidates >= end - first:
            return items[first:end], log_probability[first:end], np.zeros(end - first, np.float32)
        kept = first + top_k_items(items[first:end], log_probability[first:end], candidates)
        return take(items, kept), take(log_probability, kept), np.zeros(len(kept), np.float32)
    similarity, last = _add_similar(found, neighbours, history, recency, mask)
    on_paths, own = items[first:end], log_probability[first:end]
    reserved = int(share * (candidates if candidates else end - first))
    limit = candidates if candidates else end - first + reserved
    kept = first + top_k_items(on_paths, own, limit - reserved)
    if reserved:
        joining = _most_similar(items, similarity, first, last, kept, reserved)
        log_probability[end:last] = np.min(own) if len(own) else np.float32(0.0)
        others = _without(first, end, joining[joining < end])
        others = take(others, top_k_items(take(items, others), take(log_probability, others), limit - len(joining)))
        kept = np.concatenate((others, joining))
    return take(items, kept), take(log_probability, kept), take(similarity, kept)


@njit(cache=True, nogil=True)
def _add_similar(
    found: Gathered, neighbours: Neighbours, history: Int32s, recency: float, mask: Mask
) -> tuple[Floats, int]:
    """The similarity of each position of `found`, to which the eligible neighbours are added, and their end."""
    items, slots, count = found.items, found.slots, found.end
    similarity = np.zeros(len(items), np.float32)
    weights = recency_weights(history, recency)
    for i in range(len(history)):
        if weights[i] == 0 or _is_hidden(neighbours, history[i]):
            continue
        first, end = neighbours.offsets[history[i]], neighbours.offsets[history[i] + 1]
        near, values = neighbours.items[first:end], neighbours.similarities[first:end]
        for k in range(len(near)):
            item = near[k]
            if _is_hidden(neighbours, item):
                continue
            slot = find_item(slots, found.shift, items, item)
            position = slots[slot] - 1
            if position < 0:
                if len(mask) and not mask[item]:
                    continue
                items[count], position = item, count
                count += 1
                slots[slot] = count
            similarity[position] += weights[i] * values[k]
    return similarity, count


@njit(cache=True, nogil=True)
def _most_similar(items: Ints, similarity: Floats, first: int, last: int, kept: Ints, k: int) -> Ints:
    """The k positions from `first` to `last` that are most similar and not kept; ties by item."""
    positions = _without(first, last, kept)
    size = 0
    for position in positions:
        positions[size] = position
        size += similarity[position] > 0
    positions = positions[:size]
    return take(positions, top_k_items(take(items, positions), take(similarity, positions), k))


@njit(cache=True, nogil=True)
def _without(first: int, last: int, left_out: Ints) -> Ints:
    """The positions from `first` to `last` - 1 except some of them."""
    out = np.zeros(last, np.bool_)
    for position in left_out:
        out[position] = True
    positions, size = np.empty(last - first, np.int64), 0
    for position in range(first, last):
        positions[size] = position
        size += not out[position]
    return positions[:size]
