"""Starting from an earlier model: what is kept, what joins, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pathdex.config import Config
from pathdex.errors import ConfigError
from pathdex.model.network import ITEM_ROWS, Network
from pathdex.training.warm_start import SHAPE, WarmStart, check_same, without_popularity

CONFIG = Config(embedding_dim=4, num_nodes=4, depth=2, paths_per_item=2, structure_hidden=4, node_dim=2)


@pytest.fixture
def start() -> WarmStart:
    """Of three items; the new catalogue has the last of them, a new one, and the first."""
    weights = Network(CONFIG, 3, CONFIG).export()
    return WarmStart(CONFIG, weights, np.array([[0, 1], [2, 3], [4, 5]]), np.array([2, -1, 0]))


def test_known_items_keep_their_rows_and_new_ones_get_a_bias(start: WarmStart) -> None:
    network = Network(CONFIG, 3, CONFIG)
    random = network.export()[ITEM_ROWS].copy()
    start.restore(network, np.array([7.0, 8.0, 9.0], np.float32))
    rows = network.export()
    assert (rows[ITEM_ROWS][[0, 2]] == start.weights[ITEM_ROWS][[2, 0]]).all()
    assert (rows[ITEM_ROWS][1, :-1] == random[1, :-1]).all()
    assert rows[ITEM_ROWS][1, -1] == 8.0
    assert all((rows[name] == value).all() for name, value in start.weights.items() if name != ITEM_ROWS)


def test_known_items_keep_their_paths_and_new_ones_join_their_nearest(start: WarmStart) -> None:
    vectors = np.array([[1, 0], [0.1, 5], [0, 1]], np.float32)
    placed = start.place(np.zeros((3, 2), np.int64), vectors)
    assert placed.tolist() == [[4, 5], [0, 1], [0, 1]]


def test_everything_that_has_a_shape_must_agree() -> None:
    changes: dict[str, Any] = {"encoder": "pooled", "depth": 3, "num_nodes": 5}
    with pytest.raises(ConfigError) as caught:
        check_same(CONFIG, CONFIG.replace(**changes), SHAPE)
    assert len(caught.value.problems) == 3
    assert "depth=3: the earlier model has 2; choose the same, or train from scratch" in str(caught.value)
    check_same(CONFIG, CONFIG.replace(epochs=3, path_size=4.0), SHAPE)


def test_identities_differ_between_models_and_catalogues(start: WarmStart) -> None:
    other = WarmStart(CONFIG, Network(CONFIG, 3, CONFIG).export(), start.paths, start.codes)
    moved = WarmStart(CONFIG, start.weights, start.paths, np.array([2, 0, -1]))
    assert len({start.identity(), other.identity(), moved.identity()}) == 3


def test_what_the_popularity_weight_added_is_taken_back() -> None:
    rows, logs = np.ones((2, 3), np.float32), np.array([0.5, -0.5])
    assert without_popularity(rows, 0.0, logs) is rows
    assert without_popularity(rows, 2.0, logs)[:, -1].tolist() == [0.0, 2.0]
    assert (rows == 1).all()
