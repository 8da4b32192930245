"""What the neighbours of a history's items say about candidates: sums of similarities, in one hash table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.index.arithmetic import Floats
from pathdex.index.hashing import EMPTY, find_slot, new_table
from pathdex.retrieval.compiled.candidates import Items, best_places
from pathdex.retrieval.compiled.search import Places


class Neighbours(NamedTuple):
    """The neighbours of item i are `items[offsets[i]:offsets[i + 1]]`, their similarities stand beside them."""

    offsets: Places
    items: NDArray[np.int32]
    similarities: Floats


class Similar(NamedTuple):
    """The neighbours of a history's items."""

    items: Items
    similarity: Floats
    """The sum over the history's items."""
    place_of: Items
    """A hash table from items to their places."""


@njit(cache=True, nogil=True)
def similar_to(neighbours: Neighbours, history: Items) -> Similar:
    """The neighbours of the distinct items of a history."""
    total = 0
    for item in history:
        total += neighbours.offsets[item + 1] - neighbours.offsets[item]
    place_of, read = new_table(total), new_table(len(history))
    found, similarity = np.empty(total, np.int64), np.empty(total, np.float32)
    count = 0
    for item in history:
        slot = find_slot(read, item)
        if read[slot, 0] != EMPTY:
            continue
        read[slot, 0] = item
        for near in range(neighbours.offsets[item], neighbours.offsets[item + 1]):
            other = neighbours.items[near]
            slot = find_slot(place_of, other)
            if place_of[slot, 0] == EMPTY:
                place_of[slot, 0], place_of[slot, 1] = other, count
                found[count], similarity[count] = other, 0.0
                count += 1
            similarity[place_of[slot, 1]] += neighbours.similarities[near]
    return Similar(found[:count], similarity[:count], place_of)


@njit(cache=True, nogil=True)
def similarity_of(similar: Similar, items: Items) -> Floats:
    """The similarity of each item to the history, 0 where it is nobody's neighbour."""
    values = np.zeros(len(items), np.float32)
    for i in range(len(items)):
        slot = find_slot(similar.place_of, items[i])
        if similar.place_of[slot, 0] != EMPTY:
            values[i] = similar.similarity[similar.place_of[slot, 1]]
    return values


@njit(cache=True, nogil=True)
def most_similar(similar: Similar, without: Items, mask: NDArray[np.bool_], most: int) -> Items:
    """The items most similar to the history that `mask` allows and `without` does not hold; ties by item. An empty mask
    allows all items."""
    left_out = new_table(len(without))
    for item in without:
        left_out[find_slot(left_out, item), 0] = item
    if most == 0:
        return np.empty(0, np.int64)
    kept, count = np.empty(len(similar.items), np.int64), 0
    for place in range(len(similar.items)):
        item = similar.items[place]
        if (len(mask) == 0 or mask[item]) and left_out[find_slot(left_out, item), 0] == EMPTY:
            kept[count] = place
            count += 1
    kept = kept[:count]
    best = best_places(similar.items[kept], similar.similarity[kept], most)
    return similar.items[kept[best]]
