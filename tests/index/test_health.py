"""Health figures by hand."""

import json
import math

import numpy as np
import pytest

from pathdex.errors import DataError
from pathdex.index.health import health
from pathdex.index.initialization import random_paths

# K = 10, D = 2. Paths 12 (items 0, 1, 2), 13 (item 1) and 42 (items 0, 2).
PATHS = [[12, 42], [12, 13], [12, 42]]


def test_sizes():
    state = health(PATHS, num_nodes=10, depth=2)
    assert (state.num_items, state.paths_per_item, state.used_paths) == (3, 2, 3)
    assert (state.mean_size, state.median_size, state.top_size) == (2.0, 2.0, 3)
    assert state.item_mean_size == pytest.approx((3 * 3 + 1 * 1 + 2 * 2) / 6)
    assert state.p99_size == pytest.approx(2.98)
    assert state.size_histogram == {"1": 1, "2-3": 2}


def test_entropy_and_dead_nodes_per_layer():
    # Layer 1: node 1 is passed 4 times, node 4 twice. Layer 2: node 2 five times, node 3 once.
    state = health(PATHS, num_nodes=10, depth=2)
    first = -(4 / 6) * math.log(4 / 6) - (2 / 6) * math.log(2 / 6)
    second = -(5 / 6) * math.log(5 / 6) - (1 / 6) * math.log(1 / 6)
    assert state.entropy == pytest.approx((first, second))
    assert state.entropy_share == pytest.approx((first / math.log(10), second / math.log(10)))
    assert state.dead_nodes == (8, 8)


def test_even_use_of_all_nodes_has_entropy_share_one():
    state = health(np.arange(100)[:, None], num_nodes=10, depth=2)
    assert state.entropy_share == pytest.approx((1.0, 1.0))
    assert state.dead_nodes == (0, 0)
    assert state.size_histogram == {"1": 100}


def test_one_path_for_everything_has_entropy_zero():
    state = health(np.full((50, 1), 77), num_nodes=10, depth=2)
    assert state.entropy_share == (0.0, 0.0)
    assert state.top_size == 50
    assert state.size_histogram == {"1": 0, "2-3": 0, "4-7": 0, "8-15": 0, "16-31": 0, "32-63": 1}


def test_overlap_is_the_share_of_paths_that_stayed_in_any_place():
    state = health(PATHS, 10, 2, previous=[[42, 12], [12, 99], [1, 2]])
    assert state.overlap == pytest.approx((1 + 0.5 + 0) / 3)
    assert health(PATHS, 10, 2).overlap is None


def test_repeated_and_missing_paths_are_counted():
    state = health([[12, 12], [13, -1], [-1, -1]], num_nodes=10, depth=2)
    assert state.distinct_paths == pytest.approx((1 + 1 + 0) / 3)
    assert state.unreachable_items == 1
    assert state.used_paths == 2


def test_an_index_without_any_path_is_described():
    state = health([[-1], [-1]], num_nodes=10, depth=2)
    assert (state.used_paths, state.mean_size, state.top_size, state.unreachable_items) == (0, 0.0, 0, 2)
    assert state.size_histogram == {}


def test_a_thousand_nodes_in_six_layers_work():
    state = health(random_paths(2000, 3, 1000, 6), 1000, 6)
    assert state.used_paths == 6000
    assert state.unreachable_items == 0


def test_repr_dict_and_summary():
    state = health(PATHS, num_nodes=10, depth=2, previous=PATHS)
    assert repr(state) == "IndexHealth(3 items on 3 paths, an average item's path has 2.3, the top 3)"
    assert json.loads(json.dumps(state.to_dict()))["dead_nodes"] == [8, 8]
    assert state.summary()["overlap"] == 1.0
    assert state.summary()["dead_nodes"] == 16


def test_invalid_input_is_refused():
    with pytest.raises(DataError, match=r"paths: holds 100, must stay below K\^D=100"):
        health([[100]], num_nodes=10, depth=2)
    with pytest.raises(DataError, match=r"previous: has shape \(1, 1\), must have shape \(2, any\)"):
        health([[1], [2]], num_nodes=10, depth=2, previous=[[1]])
