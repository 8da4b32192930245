"""The inverted index that retrieval reads: the items on each path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pathdex.data.ragged import take_slices
from pathdex.errors import DataError
from pathdex.index.checks import path_array, score_array
from pathdex.index.paths import check_capacity, check_codes
from pathdex.kernels.types import Floats, Int32s, Ints


@dataclass(frozen=True, eq=False)
class Postings:
    """The paths in use, the items on each, and the trie of their prefixes.

    The items on `paths[i]` are `items[offsets[i]:offsets[i + 1]]`, ascending. `prefixes[d]` holds the sorted codes of
    the prefixes of d nodes of all paths in use: `prefixes[0]` is the root and `prefixes[depth]` the paths. The children
    of `prefixes[d][i]` are `prefixes[d + 1][children[d][i]:children[d][i + 1]]`.
    """

    num_nodes: int
    depth: int
    num_items: int
    items: Int32s
    offsets: Ints
    prefixes: Sequence[Ints]
    children: Sequence[Ints]

    @classmethod
    def from_paths(cls, paths: ArrayLike, num_nodes: int, depth: int) -> Postings:
        """Invert paths (item, path). The paths of an item must be distinct."""
        paths = path_array("paths", check_codes("paths", paths, num_nodes, depth))
        num_items, paths_per_item = paths.shape
        order = np.argsort(paths.ravel(), kind="stable")
        sorted_codes = paths.ravel()[order]
        items = (order // paths_per_item).astype(np.int32)
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
        return cls(num_nodes, depth, num_items, items, offsets, prefixes, children)

    @property
    def paths(self) -> Ints:
        """The sorted codes of the paths in use."""
        return self.prefixes[self.depth]

    @property
    def sizes(self) -> Ints:
        """The number of items on each path in use."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return f"Postings({self.num_items:,} items on {len(self):,} paths of {self.depth} x {self.num_nodes} nodes)"

    def items_on(self, paths: ArrayLike) -> Int32s:
        """The items on one path or several, path by path, ascending on each; a path that is not in use has none."""
        wanted = np.atleast_1d(paths)
        positions = np.searchsorted(self.paths, wanted)
        positions = positions[self.paths[np.minimum(positions, len(self) - 1)] == wanted]
        starts = self.offsets[positions]
        return take_slices(self.items, starts, self.offsets[positions + 1] - starts)[0]

    def log_shares(self, counts: ArrayLike) -> Floats:
        """log p(v | c) of each entry of `items`: the item's share of the interactions on its path.

        `counts` holds N_v; one is added to each, so that an item without interactions has a share too.
        """
        weights = score_array("counts", counts, self.num_items).astype(np.float64)[self.items] + 1
        totals = np.add.reduceat(weights, self.offsets[:-1]) if len(self) else weights
        shares: Floats = np.log(weights / np.repeat(totals, self.sizes)).astype(np.float32)
        return shares


def _trie(paths: Ints, num_nodes: int, depth: int) -> tuple[list[Ints], list[Ints]]:
    check_capacity(num_nodes, depth)
    prefixes: list[Ints] = [paths]
    children: list[Ints] = []
    for _ in range(depth):
        parents = prefixes[0] // num_nodes
        first = np.flatnonzero(np.diff(parents, prepend=-1))
        prefixes.insert(0, parents[first])
        children.insert(0, np.append(first, len(parents)))
    return prefixes, children
