"""Tree learning of TDM (Zhu et al. 2018, Section 3.5): recursive balanced 2-means of item vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pathdex.recommenders.tree.tree import Tree

ITERATIONS = 8


def cluster_tree(vectors: NDArray[np.float32], random: np.random.Generator, iterations: int = ITERATIONS) -> Tree:
    """A tree whose nodes hold items with similar vectors (item, dim).

    All nodes of a level are split at once. An item's preference for the second centre over the first is its projection
    onto their difference, so balanced assignment is a sort by that projection.
    """
    tree = Tree(random.permutation(len(vectors)))
    for level in range(tree.depth - 1):
        tree = Tree(_halve(vectors, tree, level, random, iterations))
    return tree


def _halve(
    vectors: NDArray[np.float32], tree: Tree, level: int, random: np.random.Generator, iterations: int
) -> NDArray[np.int64]:
    """The item order after splitting every node of the level into its two children."""
    parents, halves = tree.starts(level), tree.starts(level + 1)[:-1]
    node = np.repeat(np.arange(len(parents) - 1), np.diff(parents))
    order = tree.order
    # Two random items are a better start than random halves, whose means are nearly equal.
    size = np.diff(parents)
    first = (random.random(len(size)) * size).astype(np.int64)
    second = (first + 1 + (random.random(len(size)) * np.maximum(size - 1, 1)).astype(np.int64)) % size
    direction = vectors[order[parents[:-1] + second]] - vectors[order[parents[:-1] + first]]
    for _ in range(iterations):
        projection = np.einsum("vd,vd->v", vectors[order], direction[node])
        sorted_order = order[np.lexsort((order, projection, node))]
        if np.array_equal(sorted_order, order):
            break
        order = sorted_order
        sums = np.add.reduceat(vectors[order], halves, axis=0, dtype=np.float64)
        means = (sums / np.diff(tree.starts(level + 1))[:, None]).astype(np.float32)
        direction = means[1::2] - means[::2]
    return order
