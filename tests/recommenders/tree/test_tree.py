"""The tree by hand, and its invariants for any number of items."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.recommenders.tree.tree import NO_ITEM, Tree


@pytest.fixture
def tree() -> Tree:
    """Ranks:     0  1  2 | 3  4
    level 1:      node 0  | node 1
    level 2:      0 0 | 1 | 2 | 3 (2^2 nodes over 5 items: 0 1 | 2 | 3 | 4)."""
    return Tree(np.array([3, 0, 4, 1, 2]))


def test_five_items_by_hand(tree: Tree) -> None:
    assert tree.depth == 3
    assert tree.starts(1).tolist() == [0, 3, 5]
    assert tree.starts(2).tolist() == [0, 2, 3, 4, 5]
    assert tree.ancestors(1).tolist() == [0, 1, 1, 0, 0]
    assert tree.ancestors(2).tolist() == [0, 2, 3, 0, 1]
    assert tree.ancestors(3).tolist() == [0, 1, 2, 3, 4]
    assert tree.leaves.tolist() == [[3, 0], [4, NO_ITEM], [1, NO_ITEM], [2, NO_ITEM]]


def test_children_and_siblings(tree: Tree) -> None:
    assert tree.children(1, np.array([[1], [0]])).tolist() == [[2, 3], [0, 1]]
    assert tree.children(2, np.array([[0, 3]])).tolist() == [[3, 0, 2, NO_ITEM]]
    assert tree.siblings(2, np.array([0, 3])).tolist() == [1, 2]
    assert tree.siblings(3, np.array([3, 0, 4])).tolist() == [0, 3, NO_ITEM]


def test_item_rows_come_before_node_rows(tree: Tree) -> None:
    assert [tree.first_row(level) for level in (3, 0, 1, 2)] == [0, 5, 6, 8]
    assert tree.num_rows == 5 + 1 + 2 + 4
    assert [tree.size(level) for level in range(4)] == [1, 2, 4, 5]


@given(num_items=st.integers(1, 70), seed=st.integers(0, 100))
def test_tree_is_balanced_and_reaches_every_item(num_items: int, seed: int) -> None:
    tree = Tree(np.random.default_rng(seed).permutation(num_items))
    assert 2 ** (tree.depth - 1) < max(num_items, 2) <= 2**tree.depth
    nodes = np.array([0])
    for level in range(tree.depth):
        sizes = np.bincount(tree.ancestors(level), minlength=tree.size(level))
        assert sizes.tolist() == np.diff(tree.starts(level)).tolist()
        assert sizes.max() - sizes.min() <= 1
        assert sizes.min() >= 1
        nodes = tree.children(level, nodes)
    assert sorted(nodes[nodes != NO_ITEM]) == list(range(num_items))
    for item in range(num_items):
        path = [int(tree.ancestors(level)[item]) for level in range(tree.depth + 1)]
        assert all(path[level + 1] in tree.children(level, np.array([path[level]])) for level in range(tree.depth))
