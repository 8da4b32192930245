"""Changes to an index that answers queries meanwhile.

The items of a changed path are written to free places of the arrays, never over those that queries read. A segment is a
range of places; its room is a multiple of `STEP`, and free segments of one room form a list whose links stand in their
first place. Only what `rewrite_paths` and `merge_paths` return makes a change visible. The places of the base stay as
they are, since the process shares their pages with the file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.hashing import EMPTY, find_slot, new_table
from pathdex.kernels.prefetch import prefetch_lines
from pathdex.kernels.types import Floats, Int32s, Ints

STEP = 8
"""The room of a segment is a multiple of this many places."""
CLASSES = 4096
"""Segments of more than `STEP * CLASSES` places are not used again."""
NONE = -1
PREFETCH_AHEAD = 4
"""Paths between a prefetch and its use."""
PATH_LINES = 2
"""Cache lines of the items of a path to prefetch."""


class Segments(NamedTuple):
    """Where the items of paths can be written."""

    items: Int32s
    log_shares: Floats
    free: Ints
    """(class,) the first free segment with room for `STEP * class` items, or `NONE`; links count in steps."""
    tail: Ints
    """(2,) the first place that was never used, and the end of the base's places."""

    @classmethod
    def over(cls, items: Int32s, log_shares: Floats, used: int) -> Segments:
        """Segments behind the `used` first places."""
        tail = -(-used // STEP) * STEP
        return cls(items, log_shares, np.full(CLASSES, NONE, np.int64), np.array([tail, used], np.int64))


class PathPlaces(NamedTuple):
    """The paths in use and where their items are."""

    paths: Ints
    """Sorted codes."""
    starts: Ints
    ends: Ints
    rooms: Int32s
    """The places of each segment."""


class Touched(NamedTuple):
    """The items that a delta changes or removes."""

    count_of: Ints
    """A hash table from items to their new counts."""

    @classmethod
    def pack(cls, items: Ints, counts: Ints) -> Touched:
        return cls(count_table(items, counts))


@njit(cache=True, nogil=True)
def count_table(items: Ints, counts: Ints) -> Ints:
    """A hash table (`pathdex.kernels.hashing`) from items to counts."""
    table = new_table(len(items))
    for i in range(len(items)):
        slot = find_slot(table, items[i])
        table[slot, 0], table[slot, 1] = items[i], counts[i]
    return table


class Changes(NamedTuple):
    """The new segments of some paths; a path that no item is left on has an empty one."""

    paths: Ints
    """Sorted codes."""
    positions: Ints
    """Where the path is in `PathPlaces`, or where it belongs."""
    starts: Ints
    ends: Ints
    rooms: Int32s


@njit(cache=True, nogil=True)
def rewrite_paths(
    segments: Segments,
    old: PathPlaces,
    counts: Ints,
    touched: Touched,
    changed: Ints,
    positions: Ints,
    pairs: Ints,
    items: Int32s,
) -> Changes:
    """Write the items and log shares of the `changed` paths, which have or belong to `positions`, to new segments.

    `pairs` are the paths of the touched items that have some, sorted, and `items` those items, ascending on each path.
    """
    size = len(changed)
    found = Changes(
        changed,
        positions,
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int32),
    )
    pair = 0
    for i in range(size):
        if i + 2 * PREFETCH_AHEAD < size and positions[i + 2 * PREFETCH_AHEAD] < len(old.paths):
            prefetch_lines(segments.items, old.starts[positions[i + 2 * PREFETCH_AHEAD]], PATH_LINES)
        if i + PREFETCH_AHEAD < size and positions[i + PREFETCH_AHEAD] < len(old.paths):
            soon = positions[i + PREFETCH_AHEAD]
            for item in segments.items[old.starts[soon] : old.ends[soon]]:
                prefetch_lines(counts, item, 1)
        path, position = changed[i], positions[i]
        before = items[:0]
        if position < len(old.paths) and old.paths[position] == path:
            before = segments.items[old.starts[position] : old.ends[position]]
        first = pair
        while pair < len(pairs) and pairs[pair] == path:
            pair += 1
        joining = items[first:pair]
        count = len(joining)
        for item in before:
            count += not _is_touched(touched, item)
        start, room = _allocate(segments, count)
        on_path, shares = segments.items[start : start + count], segments.log_shares[start : start + count]
        _merge(before, joining, touched, on_path)
        _write_shares(on_path, counts, touched, shares)
        found.starts[i], found.ends[i], found.rooms[i] = start, start + count, room
    return found


@njit(cache=True, nogil=True, inline="always")
def _is_touched(touched: Touched, item: Any) -> Any:
    slot: Any = find_slot(touched.count_of, item)
    return touched.count_of[slot, 0] != EMPTY


@njit(cache=True, nogil=True)
def _allocate(segments: Segments, count: int) -> tuple[int, int]:
    """A segment for `count` items: its first place and its room. The caller made sure that the tail has room."""
    size = (count + STEP - 1) // STEP
    if size == 0:
        return 0, 0
    if size < CLASSES and segments.free[size] != NONE:
        link = segments.free[size]
        segments.free[size] = segments.items[link * STEP]
        return link * STEP, size * STEP
    start = segments.tail[0]
    segments.tail[0] += size * STEP
    return start, size * STEP


@njit(cache=True, nogil=True)
def release(segments: Segments, old: PathPlaces, changes: Changes) -> None:
    """Free the old segments of changed paths, once no query reads them."""
    for i in range(len(changes.paths)):
        position = changes.positions[i]
        if position == len(old.paths) or old.paths[position] != changes.paths[i]:
            continue
        link, size = old.starts[position] // STEP, old.rooms[position] // STEP
        if old.starts[position] >= segments.tail[1] and size < CLASSES:
            segments.items[link * STEP] = segments.free[size]
            segments.free[size] = link


@njit(cache=True, nogil=True)
def _merge(before: Int32s, joining: Int32s, touched: Touched, merged: Int32s) -> None:
    """The untouched items of a path and those that join it, ascending."""
    size, j = 0, 0
    for item in before:
        if _is_touched(touched, item):
            continue
        while j < len(joining) and joining[j] < item:
            merged[size] = joining[j]
            size, j = size + 1, j + 1
        merged[size] = item
        size += 1
    for rest in joining[j:]:
        merged[size] = rest
        size += 1


@njit(cache=True, nogil=True)
def _write_shares(items: Int32s, counts: Ints, touched: Touched, shares: Floats) -> None:
    """As `Postings.log_shares`, for one path."""
    weights, total = np.empty(len(items), np.float64), 0.0
    for i in range(len(items)):
        slot = find_slot(touched.count_of, items[i])
        count = counts[items[i]] if touched.count_of[slot, 0] == EMPTY else touched.count_of[slot, 1]
        weights[i] = np.float64(np.float32(count)) + 1.0
        total += weights[i]
    for i in range(len(items)):
        shares[i] = np.float32(np.log(weights[i] / total))


def merge_paths(old: PathPlaces, changes: Changes) -> tuple[PathPlaces, bool]:
    """The paths in use after some changes, and whether they are other paths than before."""
    size, moved = _count_merged(old, changes)
    # By numpy, which asks for huge pages: with small ones, most of the time goes into their first use.
    new = PathPlaces(*(np.empty(size, array.dtype) for array in old))
    _merge_paths(old, changes, new)
    return new, moved


@njit(cache=True, nogil=True)
def _count_merged(old: PathPlaces, changes: Changes) -> tuple[int, bool]:
    size, moved = len(old.paths), False
    for i in range(len(changes.paths)):
        known = changes.positions[i] < len(old.paths) and old.paths[changes.positions[i]] == changes.paths[i]
        kept = changes.ends[i] > changes.starts[i]
        size += int(kept) - int(known)
        moved |= kept != known
    return size, moved


@njit(cache=True, nogil=True)
def _merge_paths(old: PathPlaces, changes: Changes, new: PathPlaces) -> None:
    read, write = 0, 0
    for i in range(len(changes.paths)):
        position = changes.positions[i]
        write = _copy(old, read, position, new, write)
        known = position < len(old.paths) and old.paths[position] == changes.paths[i]
        read = position + int(known)
        if changes.ends[i] > changes.starts[i]:
            new.paths[write], new.rooms[write] = changes.paths[i], changes.rooms[i]
            new.starts[write], new.ends[write] = changes.starts[i], changes.ends[i]
            write += 1
    _copy(old, read, len(old.paths), new, write)


@njit(cache=True, nogil=True)
def _copy(old: PathPlaces, first: int, end: int, new: PathPlaces, write: int) -> int:
    count = end - first
    new.paths[write : write + count] = old.paths[first:end]
    new.starts[write : write + count] = old.starts[first:end]
    new.ends[write : write + count] = old.ends[first:end]
    new.rooms[write : write + count] = old.rooms[first:end]
    return write + count


def build_trie(paths: Ints, num_nodes: int, depth: int) -> tuple[Int32s, Int32s, Ints, Ints]:
    """The arrays of a `Trie` (first children, labels, levels), and the codes of all prefixes except the paths."""
    step = np.array([num_nodes**power for power in range(depth, -1, -1)], np.int64)
    levels = _count_prefixes(paths, step)
    first_child, label = np.empty(levels[depth] + 1, np.int32), np.empty(levels[depth + 1], np.int32)
    prefixes = np.zeros(levels[depth], np.int64)
    _fill_trie(paths, num_nodes, step, levels, first_child, label, prefixes)
    return first_child, label, levels, prefixes


@njit(cache=True, nogil=True)
def _count_prefixes(paths: Ints, step: Ints) -> Ints:
    """The number of the first node of each level, then the number of all nodes."""
    depth = len(step) - 1
    sizes = np.zeros(depth + 1, np.int64)
    sizes[0], sizes[depth] = 1, len(paths)
    ends = np.zeros(depth + 1, np.int64)  # Where the current prefix of each length ends.
    for path in paths:
        d = depth - 1
        while d > 0 and path >= ends[d]:
            sizes[d] += 1
            ends[d] = (path // step[d] + 1) * step[d]
            d -= 1
    levels = np.zeros(depth + 2, np.int64)
    for d in range(depth + 1):
        levels[d + 1] = levels[d] + sizes[d]
    return levels


@njit(cache=True, nogil=True)
def _fill_trie(
    paths: Ints, num_nodes: int, step: Ints, levels: Ints, first_child: Int32s, label: Int32s, prefixes: Ints
) -> None:
    depth = len(step) - 1
    ends, made = np.zeros(depth + 1, np.int64), np.zeros(depth + 1, np.int64)
    made[0], first_child[0], label[0] = 1, levels[1], 0
    for i in range(len(paths)):
        path = paths[i]
        d = depth - 1
        while d > 0 and path >= ends[d]:
            d -= 1
        for layer in range(d + 1, depth):
            node = levels[layer] + made[layer]
            prefix = path // step[layer]
            prefixes[node], label[node] = prefix, prefix % num_nodes
            ends[layer] = (prefix + 1) * step[layer]
            first_child[node] = levels[layer + 1] + made[layer + 1]
            made[layer] += 1
        parent = prefixes[levels[depth - 1] + made[depth - 1] - 1]
        label[levels[depth] + i] = path - parent * num_nodes
        made[depth] += 1
    first_child[levels[depth]] = levels[depth + 1]


@njit(cache=True, nogil=True)
def write_rows(target: Floats, items: Ints, rows: Floats) -> None:
    """target[items] = rows, without the interpreter's lock."""
    for i in range(len(items)):
        target[items[i]] = rows[i]


@njit(cache=True, nogil=True)
def make_writable(table: NDArray[Any], items: Ints) -> None:
    """Let the system provide the pages of some rows: the file and the process share them until the first write, and
    those past the end of the items have never been used.

    Each value is written as it is, so queries notice nothing.
    """
    last = table.shape[1] - 1
    kept = np.empty((len(items), 2), table.dtype)
    for i in range(len(items)):
        kept[i, 0], kept[i, 1] = table[items[i], 0], table[items[i], last]
    for i in range(len(items)):
        table[items[i], 0], table[items[i], last] = kept[i, 0], kept[i, 1]
