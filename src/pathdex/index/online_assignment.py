"""The M-step on a stream: items that were seen move at once, against exact path sizes |c|."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from pathdex.errors import DataError
from pathdex.index.checks import check_number, int_array, score_array
from pathdex.index.path_choice import Penalty, choose_paths, keep_current_paths
from pathdex.index.postings import NO_PATH
from pathdex.index.scores import ScoreTable
from pathdex.kernels.hashing import find_slot, new_table
from pathdex.kernels.types import Floats, Ints


class PathSizes:
    """|c|, the number of items on each path, as a hash table that grows with the paths in use."""

    def __init__(self, paths: ArrayLike = ()) -> None:
        """Count the paths of all items, (item, path) or flat; `NO_PATH` does not count."""
        codes, sizes = np.unique(np.asarray(paths, np.int64), return_counts=True)
        self._fill(codes[codes != NO_PATH], sizes[codes != NO_PATH])

    def _fill(self, codes: Ints, sizes: Ints) -> None:
        self._table = new_table(max(1, 2 * len(codes)))
        self._keys = int(_insert(self._table, codes, sizes))

    def __len__(self) -> int:
        """The number of paths in use."""
        return int((self._table[:, 1] > 0).sum())

    def __getitem__(self, path: int) -> int:
        row = self._table[find_slot(self._table, np.int64(path))]
        return int(row[1]) if row[0] == path else 0

    def items(self) -> tuple[Ints, Ints]:
        """The paths in use, ascending, and their sizes."""
        used = self._table[self._table[:, 1] > 0]
        order = np.argsort(used[:, 0])
        return used[order, 0], used[order, 1]

    def make_room(self, paths: int) -> Ints:
        """The table with room for so many more paths at a load of at most one half."""
        if 2 * (self._keys + paths) > len(self._table):
            # Paths that lost all items are dropped here: a hash table with open addresses cannot free single slots.
            codes, sizes = self.items()
            self._fill(codes, sizes)
            if 2 * (self._keys + paths) > len(self._table):
                table = new_table(2 * (self._keys + paths))
                _insert(table, codes, sizes)
                self._table = table
        self._keys += paths
        return self._table


def reassign_items(
    items: ArrayLike,
    scores: ScoreTable,
    counts: ArrayLike,
    paths: Ints,
    sizes: PathSizes,
    *,
    penalty: float,
    penalty_degree: float = 4,
) -> int:
    """Move items one after the other to the J paths with the largest gain, in place; returns how many changed paths.

    One visit of Algorithm 2 per item, in O(J S): the item leaves its paths, chooses by N_v log(sum_j s[v, pi_j(v)]) -
    penalty * f(|c|) against the sizes that it finds, and joins the chosen ones. `paths` (item, path) and `sizes` change
    together, so sizes stay exact. An item without scores keeps its paths. An item whose row holds `NO_PATH` joins for
    the first time; its row must then have J scored paths.
    """
    items = int_array("items", items, None)
    if len(items) and (largest := items.max()) >= len(paths):
        raise DataError(f"items: holds {largest}, must stay below {len(paths)}; there are no paths for it")
    penalty = check_number("penalty", penalty, low=0.0)
    degree = check_number("penalty_degree", penalty_degree, low=2.0)
    occurrences = score_array("counts", np.asarray(counts)[items], len(items))
    unplaced = (paths[items] == NO_PATH).any(axis=1)
    if (short := unplaced & (scores.scores[items, paths.shape[1] - 1] <= 0)).any():
        first = items[short.argmax()]
        raise DataError(f"items: {first} has no paths and fewer than {paths.shape[1]} scored ones; place it first")
    table = sizes.make_room(len(items) * paths.shape[1])
    return int(_reassign(items, scores.codes, scores.scores, occurrences, paths, table, Penalty.of(penalty, degree)))


def place_items(items: ArrayLike, codes: ArrayLike, paths: Ints, sizes: PathSizes) -> None:
    """Put items on the given paths (item, path), or with `NO_PATH` on none, in place; sizes follow."""
    items = int_array("items", items, None)
    codes = int_array("codes", codes, len(items), paths.shape[1], low=NO_PATH)
    _place(items, codes, paths, sizes.make_room(codes.size))


def join_best_path(items: ArrayLike, scores: ScoreTable, paths: Ints, sizes: PathSizes) -> None:
    """Put items on the path with their largest score, if they are not, instead of the last of theirs; in place.

    For items that have been seen once. Differs from the paper: with N_v = 1, the penalty drives an item from all paths
    that its user is led to, and no query finds it.
    """
    items = int_array("items", items, None)
    best, own = scores.codes[items, 0], paths[items]
    leaves = (scores.scores[items, 0] > 0) & (own != best[:, None]).all(axis=1)
    place_items(items[leaves], np.column_stack([best, own[:, :-1]])[leaves], paths, sizes)


def paths_with_room(
    paths: ArrayLike, sizes: PathSizes, num_nodes: int, depth: int, room: float, generator: np.random.Generator
) -> Ints:
    """Distinct paths near the given ones (path,), one for each: itself if it has fewer than `room` items.

    Otherwise the smallest of some random paths with the longest common prefix under which one has room. If every path
    that is tried is full, the smallest of the last ones.
    """
    chosen: list[int] = []
    wanted = int_array("paths", paths, None)
    for path in wanted.tolist():
        found: list[int] = []
        for layers in range(depth + 1):
            width = num_nodes**layers
            drawn = generator.choice(width, min(width, num_nodes + len(wanted)), replace=False)
            found = [one for one in (path - path % width + drawn).tolist() if one not in chosen]
            if found and sizes[min(found, key=sizes.__getitem__)] < room:
                break
        chosen.append(min(found, key=sizes.__getitem__))
    return np.array(chosen, np.int64)


@njit(cache=True, nogil=True)
def _insert(table: Ints, codes: Ints, sizes: Ints) -> int:
    for i in range(len(codes)):
        slot = find_slot(table, codes[i])
        table[slot, 0], table[slot, 1] = codes[i], sizes[i]
    return len(codes)


@njit(cache=True, nogil=True)
def _leave(table: Ints, paths: Ints) -> None:
    for path in paths:
        if path != NO_PATH:
            table[find_slot(table, path), 1] -= 1


@njit(cache=True, nogil=True)
def _join(table: Ints, paths: Ints) -> None:
    for path in paths:
        if path != NO_PATH:
            slot = find_slot(table, path)
            if table[slot, 0] != path:
                table[slot, 0], table[slot, 1] = path, 0
            table[slot, 1] += 1


@njit(cache=True, nogil=True)
def _place(items: Ints, codes: Ints, paths: Ints, table: Ints) -> None:
    for i in range(len(items)):
        _leave(table, paths[items[i]])
        for j in range(codes.shape[1]):
            paths[items[i], j] = codes[i, j]
        _join(table, paths[items[i]])


@njit(cache=True, nogil=True)
def _reassign(
    items: Ints, codes: Ints, scores: Floats, counts: Floats, paths: Ints, table: Ints, penalty: Penalty
) -> int:
    num_candidates, J = codes.shape[1], paths.shape[1]
    places, sizes = np.arange(num_candidates), np.empty(num_candidates, np.int32)
    seen, chosen = np.empty(num_candidates, np.int32), np.empty(J, np.int64)
    moved = 0
    for i in range(len(items)):
        v = items[i]
        if scores[v, 0] <= 0:
            continue
        _leave(table, paths[v])
        scored = 0
        while scored < num_candidates and scores[v, scored] > 0:
            slot = find_slot(table, codes[v, scored])
            sizes[scored] = table[slot, 1] if table[slot, 0] == codes[v, scored] else 0
            scored += 1
        found = choose_paths(places[:scored], scores[v], counts[i], places[:0], sizes, penalty, seen, chosen)
        for j in range(found):
            chosen[j] = codes[v, chosen[j]]
        keep_current_paths(chosen, found, paths[v])
        changed = False
        for j in range(J):
            kept = False
            for before in paths[v]:
                kept |= before == chosen[j]
            changed |= not kept
        for j in range(J):
            paths[v, j] = chosen[j]
        _join(table, paths[v])
        moved += changed
    return moved
