"""What the neighbours of a history's items say about candidates: sums of similarities, in one hash table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.arithmetic import Floats
from pathdex.kernels.beam import Places
from pathdex.kernels.candidates import Items, best_places
from pathdex.kernels.hashing import EMPTY, find_slot, new_table


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
def join_neighbours(
    similar: Similar,
    items: Items,
    log_probability: Floats,
    exclude: NDArray[np.int32],
    mask: NDArray[np.bool_],
    room: int,
    budget: int,
) -> tuple[Items, Floats]:
    """The items that paths have found, at most `budget` of them, and in `room` places of that the items most similar to
    the history that are not among them; an item of those that no path has found counts as the least probable that one
    has. What room the similar items do not need is left to the paths."""
    sure = items[best_places(items, log_probability, budget - room)]
    joining = _most_similar(similar, sure, exclude, mask, room)
    place_of = new_table(len(joining))
    for place in range(len(joining)):
        slot = find_slot(place_of, joining[place])
        place_of[slot, 0], place_of[slot, 1] = joining[place], place
    joined = np.full(len(joining), np.min(log_probability), np.float32)
    others, count = np.empty(len(items), np.int64), 0
    for i in range(len(items)):
        slot = find_slot(place_of, items[i])
        if place_of[slot, 0] == EMPTY:
            others[count] = i
            count += 1
        else:
            joined[place_of[slot, 1]] = log_probability[i]
    others = others[:count]
    others = others[best_places(items[others], log_probability[others], budget - len(joining))]
    return np.concatenate((items[others], joining)), np.concatenate((log_probability[others], joined))


@njit(cache=True, nogil=True)
def _most_similar(
    similar: Similar, candidates: Items, exclude: NDArray[np.int32], mask: NDArray[np.bool_], most: int
) -> Items:
    """The eligible items most similar to the history that are no candidates yet; ties by item. An empty mask allows all
    items."""
    left_out = new_table(len(candidates) + len(exclude))
    for item in candidates:
        left_out[find_slot(left_out, item), 0] = item
    for item in exclude:
        left_out[find_slot(left_out, item), 0] = item
    kept, count = np.empty(len(similar.items), np.int64), 0
    for place in range(len(similar.items)):
        item = similar.items[place]
        if (len(mask) == 0 or mask[item]) and left_out[find_slot(left_out, item), 0] == EMPTY:
            kept[count] = place
            count += 1
    kept = kept[:count]
    best = best_places(similar.items[kept], similar.similarity[kept], most)
    return similar.items[kept[best]]
