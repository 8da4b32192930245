"""Initial paths: random and by residual k-means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.errors import ConfigError, DataError
from pathdex.index.initialization import random_paths, residual_kmeans_paths
from tests.index.vectors import clustered


@given(st.integers(1, 30), st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 9))
def test_random_paths_are_distinct_and_in_range(num_items, paths_per_item, num_nodes, depth, seed):
    paths_per_item = min(paths_per_item, num_nodes**depth)
    paths = random_paths(num_items, paths_per_item, num_nodes, depth, seed)
    assert paths.shape == (num_items, paths_per_item)
    assert all(len(set(row)) == paths_per_item for row in paths.tolist())
    assert paths.min() >= 0
    assert paths.max() < num_nodes**depth


def test_random_paths_are_uniform():
    paths = random_paths(num_items=6000, paths_per_item=2, num_nodes=4, depth=1)
    pairs, counts = np.unique(np.sort(paths), axis=0, return_counts=True)
    assert len(pairs) == 6
    assert counts == pytest.approx(np.full(6, 1000), abs=150)  # five standard deviations


def test_random_paths_follow_the_seed():
    assert (random_paths(9, 2, 50, 3, seed=1) == random_paths(9, 2, 50, 3, seed=1)).all()
    assert (random_paths(9, 2, 50, 3, seed=1) != random_paths(9, 2, 50, 3, seed=2)).any()


def test_random_paths_reach_a_structure_that_no_memory_holds():
    paths = random_paths(1000, 3, num_nodes=1000, depth=6)
    assert paths.max() > 0.9e18


def test_more_paths_than_exist_are_refused():
    with pytest.raises(ConfigError, match=r"paths_per_item=5: J must be at most K\^D=4; raise num_nodes or depth"):
        random_paths(10, 5, num_nodes=2, depth=2)
    with pytest.raises(ConfigError, match="num_items=0: must be a whole number of at least 1"):
        random_paths(0, 1, num_nodes=2, depth=2)


def test_near_vectors_share_their_first_node():
    vectors = clustered()
    paths = residual_kmeans_paths(vectors, paths_per_item=1, num_nodes=12, depth=3, max_size=240)
    first = paths[:, 0] // 144
    for cluster in range(6):
        own = set(first[cluster * 40 : (cluster + 1) * 40].tolist())
        others = set(first.tolist()) - own
        assert own.isdisjoint(set(first[(cluster + 1) * 40 :].tolist()))
        assert len(others) >= 5


@pytest.mark.parametrize("num_items", [3, 400])
def test_equal_vectors_are_spread_over_paths(num_items):
    paths = residual_kmeans_paths(np.ones((num_items, 4)), 2, num_nodes=8, depth=3, max_size=10)
    assert all(len(set(row)) == 2 for row in paths.tolist())
    assert np.unique(paths, return_counts=True)[1].max() <= 10
    assert paths.max() < 8**3


def test_k_means_paths_follow_the_seed():
    first, again = (residual_kmeans_paths(clustered(), 2, 6, 3, seed=4) for _ in range(2))
    assert (first == again).all()


@pytest.mark.parametrize(
    ("vectors", "options", "error", "message"),
    [
        ([1.0, 2.0], {}, DataError, r"vectors: has shape \(2,\), must be \(item, dim\)"),
        (np.empty((0, 3)), {}, DataError, r"vectors: has shape \(0, 3\), must be \(item, dim\), neither empty"),
        ([[np.nan]], {}, DataError, "vectors: holds NaN or infinity, must be finite"),
        ([[1.0]] * 9, {"max_size": 2}, ConfigError, "max_size=2: must be at least 5, twice the mean path size"),
        ([[1.0]], {"iterations": 0}, ConfigError, "iterations=0: must be a whole number of at least 1"),
    ],
)
def test_invalid_vectors_are_refused(vectors, options, error, message):
    with pytest.raises(error, match=message):
        residual_kmeans_paths(vectors, 1, num_nodes=2, depth=2, **options)
