"""A binary tree with one leaf per item, as full as can be.

Level l has 2^l nodes, and the items stand at the leaves in some order: node c of level l holds the items of rank
ceil(c V / 2^l) up to ceil((c + 1) V / 2^l), so that the nodes of a level differ by one item at most. The order is all
that there is to learn. The leaves are the items themselves: level `depth` is numbered by item codes.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

NO_ITEM = -1


class Tree:
    """The tree that has the items in the given order, a permutation of the catalogue."""

    def __init__(self, order: NDArray[np.int64]) -> None:
        self.order = order
        self.num_items = len(order)
        self.depth = max(1, (self.num_items - 1).bit_length())
        self.ranks = np.empty_like(order)
        self.ranks[order] = np.arange(self.num_items)

    def size(self, level: int) -> int:
        """Nodes of the level."""
        return self.num_items if level == self.depth else 1 << level

    def starts(self, level: int) -> NDArray[np.int64]:
        """The rank where each inner node of the level begins, and the number of items at the end."""
        return -(-np.arange((1 << level) + 1, dtype=np.int64) * self.num_items // (1 << level))

    def ancestors(self, level: int) -> NDArray[np.int64]:
        """The node of the level that each item is under; on the last level the item itself."""
        if level == self.depth:
            return np.arange(self.num_items)
        return (self.ranks << level) // self.num_items

    @cached_property
    def leaves(self) -> NDArray[np.int64]:
        """The items under each node of the level above the leaves: (node, 2), `NO_ITEM` where there is only one."""
        starts = self.starts(self.depth - 1)
        second = starts[:-1] + 1
        there = second < starts[1:]
        return np.column_stack(
            [self.order[starts[:-1]], np.where(there, self.order[np.minimum(second, self.num_items - 1)], NO_ITEM)]
        )

    def children(self, level: int, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The nodes of the next level under those of this one: (..., node) to (..., 2 node), `NO_ITEM` for no leaf."""
        pairs = self.leaves[nodes] if level == self.depth - 1 else np.stack([2 * nodes, 2 * nodes + 1], axis=-1)
        return pairs.reshape(*nodes.shape[:-1], 2 * nodes.shape[-1])

    def siblings(self, level: int, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The other child of each node's parent; `NO_ITEM` for a leaf that has none."""
        if level < self.depth:
            return nodes ^ 1
        pairs = self.leaves[self.ancestors(self.depth - 1)[nodes]]
        return np.where(pairs[..., 0] == nodes, pairs[..., 1], pairs[..., 0])

    # Vectors: a table with a row per item, then a row per inner node.

    @property
    def num_rows(self) -> int:
        return self.num_items + (1 << self.depth) - 1

    def first_row(self, level: int) -> int:
        """Where the vectors of the level's nodes begin in the table."""
        return 0 if level == self.depth else self.num_items + (1 << level) - 1
