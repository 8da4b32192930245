import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.errors import ConfigError
from pathdex.index.start import random_paths


@given(st.integers(1, 30), st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 9))
def test_random_paths_are_distinct_and_in_range(num_items, paths_per_item, num_nodes, depth, seed):
    paths_per_item = min(paths_per_item, num_nodes**depth)
    paths = random_paths(num_items, paths_per_item, num_nodes, depth, seed)
    assert paths.shape == (num_items, paths_per_item)
    assert all(len(set(row)) == paths_per_item for row in paths.tolist())
    assert paths.min() >= 0
    assert paths.max() < num_nodes**depth


def test_random_paths_are_even():
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


def test_more_paths_than_the_structure_has_are_refused():
    with pytest.raises(ConfigError, match=r"paths_per_item=5: J must be at most K\^D=4; raise num_nodes or depth"):
        random_paths(10, 5, num_nodes=2, depth=2)
    with pytest.raises(ConfigError, match="num_items=0: must be a whole number of at least 1"):
        random_paths(0, 1, num_nodes=2, depth=2)
