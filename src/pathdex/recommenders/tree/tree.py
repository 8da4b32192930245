"""A balanced binary tree with one leaf per item.

Level l has 2^l nodes. Node c of level l holds the items of rank ceil(c V / 2^l) up to ceil((c + 1) V / 2^l), so the
nodes of a level differ by at most one item. The item order is the only learned part. Leaves are items: the nodes of
level `depth` are item codes.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

NO_ITEM = -1


def tree_depth(num_items: int) -> int:
    """The number of levels below the root."""
    return max(1, (num_items - 1).bit_length())


def num_rows(num_items: int) -> int:
    """The rows of the table of vectors: one per item, then one per inner node."""
    return num_items + (1 << tree_depth(num_items)) - 1


class Tree:
    """The tree for an item order, a permutation of the item codes."""

    def __init__(self, order: NDArray[np.int64]) -> None:
        self.order = order
        self.num_items = len(order)
        self.depth = tree_depth(self.num_items)
        self.ranks = np.empty_like(order)
        self.ranks[order] = np.arange(self.num_items)

    def size(self, level: int) -> int:
        """Number of nodes of a level."""
        return self.num_items if level == self.depth else 1 << level

    def starts(self, level: int) -> NDArray[np.int64]:
        """First rank of each inner node of a level, followed by the number of items."""
        return -(-np.arange((1 << level) + 1, dtype=np.int64) * self.num_items // (1 << level))

    def ancestors(self, level: int) -> NDArray[np.int64]:
        """Each item's ancestor on a level; on the last level, the item itself."""
        if level == self.depth:
            return np.arange(self.num_items)
        return (self.ranks << level) // self.num_items

    @cached_property
    def leaves(self) -> NDArray[np.int64]:
        """The items under each node above the leaves: (node, 2), `NO_ITEM` if there is only one."""
        starts = self.starts(self.depth - 1)
        second = starts[:-1] + 1
        there = second < starts[1:]
        return np.column_stack(
            [self.order[starts[:-1]], np.where(there, self.order[np.minimum(second, self.num_items - 1)], NO_ITEM)]
        )

    def children(self, level: int, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Children of nodes: (..., node) -> (..., 2 node); `NO_ITEM` for a missing leaf."""
        pairs = self.leaves[nodes] if level == self.depth - 1 else np.stack([2 * nodes, 2 * nodes + 1], axis=-1)
        return pairs.reshape(*nodes.shape[:-1], 2 * nodes.shape[-1])

    def siblings(self, level: int, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The other child of each node's parent; `NO_ITEM` for a leaf without a sibling."""
        if level < self.depth:
            return nodes ^ 1
        pairs = self.leaves[self.ancestors(self.depth - 1)[nodes]]
        return np.where(pairs[..., 0] == nodes, pairs[..., 1], pairs[..., 0])

    # Vectors are in a table with one row per item, then one row per inner node.

    @property
    def num_rows(self) -> int:
        return num_rows(self.num_items)

    def first_row(self, level: int) -> int:
        """First table row of a level's nodes."""
        return 0 if level == self.depth else self.num_items + (1 << level) - 1
