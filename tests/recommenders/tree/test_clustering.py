"""Balanced 2-means on vectors with obvious clusters."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.recommenders.tree.clustering import cluster_tree


def test_distant_groups_become_subtrees() -> None:
    random = np.random.default_rng(0)
    centres = np.array([[0, 0], [0, 10], [100, 0], [100, 10]], np.float32)
    group = random.permutation(np.repeat(np.arange(4), 8))
    vectors = (centres[group] + random.normal(0, 0.1, (32, 2))).astype(np.float32)
    tree = cluster_tree(vectors, random)
    pairs = {frozenset(group[tree.ancestors(1) == node].tolist()) for node in range(2)}
    assert pairs == {frozenset({0, 1}), frozenset({2, 3})}
    assert all(len(set(group[tree.ancestors(2) == node].tolist())) == 1 for node in range(4))


def test_groups_of_unequal_size_are_split_evenly() -> None:
    vectors = np.array([[0.0], [1.0], [2.0], [3.0], [50.0]], np.float32)
    tree = cluster_tree(vectors, np.random.default_rng(1))
    halves = sorted(sorted(np.flatnonzero(tree.ancestors(1) == node).tolist()) for node in range(2))
    assert halves in ([[0, 1], [2, 3, 4]], [[0, 1, 2], [3, 4]])


@settings(deadline=None, max_examples=25)
@given(num_items=st.integers(1, 40), equal=st.booleans(), seed=st.integers(0, 50))
def test_order_is_a_permutation(num_items: int, equal: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    vectors = np.zeros((num_items, 3), np.float32) if equal else random.normal(size=(num_items, 3)).astype(np.float32)
    first = cluster_tree(vectors, np.random.default_rng(seed))
    assert sorted(first.order.tolist()) == list(range(num_items))
    assert first.order.tolist() == cluster_tree(vectors, np.random.default_rng(seed)).order.tolist()
