"""Sums over the whole index, vectorised, computed once per model version.

They are copies: a live model changes its arrays in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pathdex.index.paths import decode_paths
from pathdex.index.postings import Postings
from pathdex.kernels.types import Ints

MAX_CELLS = 1024
"""Cells of a layer; with more nodes per layer, consecutive nodes share a cell."""
FLOWS = (24, 48, 96)
"""Busiest prefixes per layer in the overview; for deeper layers the last number."""
BLOCK = 1 << 22
"""Entries of the postings that are summed at a time, which bounds the memory."""


class Loads(NamedTuple):
    """One layer by cells of nodes."""

    items: Ints
    paths: Ints
    nodes_per_cell: int


class Children(NamedTuple):
    """Nodes of one layer, the busiest first."""

    nodes: Ints
    items: Ints
    paths: Ints
    interactions: Ints


@dataclass(frozen=True, eq=False)
class IndexFacts:
    """The paths in use, sorted by code, with the items and interactions on each."""

    num_nodes: int
    depth: int
    paths: Ints
    sizes: Ints
    interactions: Ints

    @classmethod
    def of(cls, postings: Postings, counts: Ints) -> IndexFacts:
        """From the postings and the interactions of each item."""
        sizes = postings.sizes.astype(np.int64)
        totals, first = np.zeros(len(sizes), np.int64), 0
        ends = np.cumsum(sizes)
        while first < len(sizes):
            last = max(first + 1, int(np.searchsorted(ends, (ends[first - 1] if first else 0) + BLOCK, "right")))
            weights = counts[postings.items_at(np.arange(first, last))]
            starts = ends[first:last] - sizes[first:last]
            totals[first:last] = np.add.reduceat(weights, starts - starts[0])
            first = last
        return cls(postings.num_nodes, postings.depth, postings.paths.copy(), sizes, totals)

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def num_entries(self) -> int:
        return int(self.sizes.sum())

    @cached_property
    def by_size(self) -> Ints:
        """Positions of all paths, the largest first, ties by code."""
        return np.argsort(-self.sizes, kind="stable")

    @cached_property
    def by_interactions(self) -> Ints:
        return np.argsort(-self.interactions, kind="stable")

    @cached_property
    def _sums(self) -> tuple[Ints, Ints]:
        """Running sums of sizes and of interactions, with a leading 0: a prefix is a range of paths."""
        return _running(self.sizes), _running(self.interactions)

    def range_of(self, prefix: tuple[int, ...]) -> range:
        """The positions of the paths under a prefix."""
        code = 0
        for node in prefix:
            code = code * self.num_nodes + node
        width = self.num_nodes ** (self.depth - len(prefix))
        first, last = np.searchsorted(self.paths, [code * width, (code + 1) * width])
        return range(int(first), int(last))

    def totals(self, part: range) -> tuple[int, int]:
        """Items and interactions on a range of paths."""
        items, interactions = self._sums
        return int(items[part.stop] - items[part.start]), int(interactions[part.stop] - interactions[part.start])

    def items_under(self, prefixes: Ints, depth: int) -> Ints:
        """The items under each of some prefixes of `depth` nodes, given by code."""
        width = self.num_nodes ** (self.depth - depth)
        first, last = (np.searchsorted(self.paths, edges * width) for edges in (prefixes, prefixes + 1))
        sums, _ = self._sums
        items: Ints = sums[last] - sums[first]
        return items

    def ordered(self, part: range | Ints, sort: str, first: int, count: int) -> Ints:
        """Positions of a page of some paths, by `items`, `interactions` or `path`; `part` are ascending positions."""
        if sort == "path":
            return np.asarray(part[first : first + count], np.int64)
        if len(part) == len(self):
            whole = self.by_size if sort == "items" else self.by_interactions
            return whole[first : first + count]
        values = self.sizes if sort == "items" else self.interactions
        if isinstance(part, range):
            return _largest(values[part.start : part.stop], first, count) + part.start
        found: Ints = part[_largest(values[part], first, count)]
        return found

    def through(self, layer: int, first: int, last: int) -> Ints:
        """Positions of the paths with a node from `first` to `last` in a layer, which counts from 1."""
        width = self.num_nodes ** (self.depth - layer)
        found = []
        for begin in range(0, len(self), BLOCK):
            nodes = self.paths[begin : begin + BLOCK] // width % self.num_nodes
            found.append(np.flatnonzero((nodes >= first) & (nodes <= last)) + begin)
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def nodes_of(self, positions: Ints, layer: int) -> Children:
        """The nodes of some paths in a layer, the busiest first."""
        nodes = self.paths[positions] // self.num_nodes ** (self.depth - layer) % self.num_nodes
        found, inverse, paths = np.unique(nodes, return_inverse=True, return_counts=True)
        items, interactions = (
            np.bincount(inverse, values[positions], len(found)).astype(np.int64)
            for values in (self.sizes, self.interactions)
        )
        order = np.argsort(-items, kind="stable")
        return Children(*(values[order] for values in (found, items, paths, interactions)))

    def children(self, prefix: tuple[int, ...]) -> Children:
        """The next nodes under a prefix that is not a whole path."""
        part = self.range_of(prefix)
        return self._grouped(part, len(prefix) + 1)

    def _grouped(self, part: range, layer: int) -> Children:
        codes = self.paths[part.start : part.stop] // self.num_nodes ** (self.depth - layer)
        first = np.flatnonzero(np.diff(codes, prepend=-1)) + part.start
        last = np.append(first[1:], part.stop)
        items, interactions = self._sums
        found = Children(
            codes[first - part.start] % self.num_nodes,
            items[last] - items[first],
            last - first,
            interactions[last] - interactions[first],
        )
        order = np.argsort(-found.items, kind="stable")
        return Children(*(values[order] for values in found))

    @cached_property
    def loads(self) -> list[Loads]:
        """Items and paths per node of each layer."""
        step = -(-self.num_nodes // MAX_CELLS)
        cells = -(-self.num_nodes // step)
        items, paths = np.zeros((self.depth, cells), np.int64), np.zeros((self.depth, cells), np.int64)
        for first in range(0, len(self), BLOCK):
            nodes = decode_paths(self.paths[first : first + BLOCK], self.num_nodes, self.depth) // step
            for layer in range(self.depth):
                weights = self.sizes[first : first + BLOCK]
                items[layer] += np.bincount(nodes[:, layer], weights, cells).astype(np.int64)
                paths[layer] += np.bincount(nodes[:, layer], minlength=cells)
        return [Loads(items[layer], paths[layer], step) for layer in range(self.depth)]

    @cached_property
    def flows(self) -> list[tuple[tuple[int, ...], int, int]]:
        """The busiest prefixes with their items and paths: on each layer, those below the ones before."""
        found: list[tuple[tuple[int, ...], int, int]] = []
        parents: list[tuple[int, ...]] = [()]
        for layer in range(1, self.depth + 1):
            level: list[tuple[tuple[int, ...], int, int]] = []
            for parent in parents:
                nodes, items, paths, _ = (values[: FLOWS[-1]].tolist() for values in self.children(parent))
                level += [((*parent, n), i, p) for n, i, p in zip(nodes, items, paths, strict=True)]
            level.sort(key=lambda one: (-one[1], one[0]))
            level = level[: FLOWS[min(layer, len(FLOWS)) - 1]]
            found += level
            parents = [prefix for prefix, *_ in level]
        return found

    @cached_property
    def size_classes(self) -> list[tuple[int, int, int, int]]:
        """Classes of sizes that double: lowest, highest, paths, items."""
        if not len(self):
            return []
        classes = np.log2(self.sizes).astype(np.int64)
        paths, items = np.bincount(classes), np.bincount(classes, self.sizes).astype(np.int64)
        return [(2**k, 2 ** (k + 1) - 1, int(paths[k]), int(items[k])) for k in range(len(paths))]


def _running(values: Ints) -> Ints:
    sums = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=sums[1:])
    return sums


def _largest(values: Ints, first: int, count: int) -> Ints:
    """A page of the positions of the largest values, ties by position."""
    end = first + count
    if end * 4 >= len(values):
        return np.argsort(-values, kind="stable")[first:end]
    limit = np.partition(values, len(values) - end)[len(values) - end]
    above = np.flatnonzero(values > limit)
    kept = np.concatenate([above, np.flatnonzero(values == limit)[: end - len(above)]])
    found: Ints = kept[np.argsort(-values[kept], kind="stable")][first:]
    return found
