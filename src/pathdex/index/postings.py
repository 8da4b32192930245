"""The inverted index that retrieval reads: the items on each path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pathdex.data.ragged import take_slices
from pathdex.errors import DataError
from pathdex.index.checks import path_array, score_array
from pathdex.index.paths import check_capacity, check_codes
from pathdex.kernels.types import Floats, Int32s, Ints

NO_PATH = -1
"""Fills the paths of an item that is on none: it was removed, or is not placed yet."""


@dataclass(frozen=True, eq=False)
class Postings:
    """The paths in use, the items on each, and the trie of their prefixes.

    The items on `paths[i]` are `items[starts[i]:ends[i]]`, ascending. They stand back to back in the order of the paths
    (see `offsets`), except in a live index, which moves the items of a changed path elsewhere. `prefixes[d]` holds the
    sorted codes of the prefixes of d nodes of all paths in use: `prefixes[0]` is the root and `prefixes[depth]` the
    paths. The children of `prefixes[d][i]` are `prefixes[d + 1][children[d][i]:children[d][i + 1]]`.
    """

    num_nodes: int
    depth: int
    num_items: int
    items: Int32s
    starts: Ints
    ends: Ints
    prefixes: Sequence[Ints]
    children: Sequence[Ints]

    @classmethod
    def from_paths(cls, paths: ArrayLike, num_nodes: int, depth: int) -> Postings:
        """Invert paths (item, path). The paths of an item must be distinct; one without paths has only -1."""
        paths = path_array("paths", paths, low=NO_PATH)
        num_items, paths_per_item = paths.shape
        placed = placed_items(paths)
        codes = check_codes("paths", paths[placed], num_nodes, depth).ravel()
        order = np.argsort(codes, kind="stable")
        sorted_codes = codes[order]
        items = placed[order // paths_per_item].astype(np.int32)
        starts = np.flatnonzero(np.diff(sorted_codes, prepend=-1))
        repeated = (np.diff(sorted_codes) == 0) & (np.diff(items) == 0)
        if repeated.any():
            raise DataError(
                f"paths: item {items[:-1][repeated][0]} has a path twice, the paths of an item must be distinct; "
                "create them with random_paths, residual_kmeans_paths or assign_paths"
            )
        return cls.from_sorted(sorted_codes[starts], np.append(starts, len(items)), items, num_items, num_nodes, depth)

    @classmethod
    def from_sorted(
        cls, paths: Ints, offsets: Ints, items: Int32s, num_items: int, num_nodes: int, depth: int
    ) -> Postings:
        """From the sorted paths in use and their items, as stored in a bundle; only the trie is built."""
        prefixes, children = _trie(paths, num_nodes, depth)
        return cls(num_nodes, depth, num_items, items, offsets[:-1], offsets[1:], prefixes, children)

    @property
    def paths(self) -> Ints:
        """The sorted codes of the paths in use."""
        return self.prefixes[self.depth]

    @property
    def sizes(self) -> Ints:
        """The number of items on each path in use."""
        sizes: Ints = self.ends - self.starts
        return sizes

    @cached_property
    def num_entries(self) -> int:
        """The number of items on all paths, each counted once per path."""
        return int(self.sizes.sum())

    @property
    def offsets(self) -> Ints:
        """Where the items of each path begin, and the end of the last; an error in a live index, see `packed`."""
        assert self.is_packed
        return np.append(self.starts, self.ends[-1:] if len(self) else 0)

    @property
    def is_packed(self) -> bool:
        """Whether the items of the paths stand back to back."""
        packed = np.array_equal(self.starts[1:], self.ends[:-1])
        return packed and (self.starts[0] == 0 if len(self) else not len(self.items))

    def packed(self, log_shares: Floats) -> tuple[Postings, Floats]:
        """The same postings with the items of the paths back to back, and the log shares of their entries."""
        if self.is_packed and self.ends[-1:].sum() == len(self.items):
            return self, log_shares if len(log_shares) == len(self.items) else log_shares[: len(self.items)]
        items, offsets = take_slices(self.items, self.starts, self.sizes)
        shares, _ = take_slices(log_shares, self.starts, self.sizes)
        return replace(self, items=items, starts=offsets[:-1], ends=offsets[1:]), shares

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return f"Postings({self.num_items:,} items on {len(self):,} paths of {self.depth} x {self.num_nodes} nodes)"

    def items_on(self, paths: ArrayLike) -> Int32s:
        """The items on one path or several, path by path, ascending on each; a path that is not in use has none."""
        wanted = np.atleast_1d(paths)
        positions = np.searchsorted(self.paths, wanted)
        known = positions < len(self)
        positions, wanted = positions[known], wanted[known]
        return self.items_at(positions[self.paths[positions] == wanted])

    def items_at(self, positions: Ints) -> Int32s:
        """The items on paths given by their positions in `paths`, path by path."""
        starts = self.starts[positions]
        return take_slices(self.items, starts, self.ends[positions] - starts)[0]

    def log_shares(self, counts: ArrayLike) -> Floats:
        """log p(v | c) of each entry of `items`: the item's share of the interactions on its path.

        `counts` holds N_v; one is added to each, so that an item without interactions has a share too.
        """
        weights = score_array("counts", counts, self.num_items).astype(np.float64)[self.items] + 1
        totals = np.add.reduceat(weights, self.starts) if len(self) else weights
        shares: Floats = np.log(weights / np.repeat(totals, self.sizes)).astype(np.float32)
        return shares


def placed_items(paths: Ints) -> Ints:
    """The items that have paths (item, path). An item has all its J paths or none."""
    placed = paths[:, 0] != NO_PATH
    half = np.flatnonzero((paths != NO_PATH).any(axis=1) != (paths != NO_PATH).all(axis=1))
    if len(half):
        raise DataError(
            f"paths: item {half[0]} has {int((paths[half[0]] != NO_PATH).sum())} of {paths.shape[1]} paths, "
            f"must have all or none; fill the row with {NO_PATH} for none"
        )
    return np.flatnonzero(placed)


def _trie(paths: Ints, num_nodes: int, depth: int) -> tuple[list[Ints], list[Ints]]:
    check_capacity(num_nodes, depth)
    prefixes: list[Ints] = [paths]
    children: list[Ints] = []
    for _ in range(depth):
        parents = prefixes[0] // num_nodes
        first = np.flatnonzero(np.diff(parents, prepend=-1))
        prefixes.insert(0, parents[first])
        children.insert(0, np.append(first, len(parents)))
    if not len(paths):  # The root is always there.
        prefixes[0], children[0] = np.zeros(1, np.int64), np.zeros(2, np.int64)
    return prefixes, children
