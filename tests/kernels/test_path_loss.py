"""The parts of the structure loss that a person can check by hand."""

import numpy as np
import pytest

from pathdex.kernels.path_loss import hidden_rows, prefix_rows, responsibilities

PATHS = np.array([[[0, 1], [0, 2], [3, 1]], [[1, 1], [2, 1], [1, 3]]])


def test_paths_with_the_same_prefix_share_a_row() -> None:
    rows, owners = np.empty((3, 2, 3), np.int64), np.empty(6, np.int64)
    assert prefix_rows(PATHS, 0, rows, owners) == 2
    assert prefix_rows(PATHS, 1, rows, owners) == 4
    assert rows[:2].tolist() == [[[0, 0, 0], [1, 1, 1]], [[0, 0, 1], [2, 3, 2]]]
    assert owners[:4].tolist() == [0, 2, 3, 4]
    assert prefix_rows(PATHS, 2, rows, owners) == 6


def test_hidden_rows_add_the_nodes_before_the_layer() -> None:
    sums = np.array([[[9, 9], [1, -5]], [[9, 9], [2, 2]]], np.float32)  # two layers of two hidden units
    nodes = np.zeros((1, 4, 2), np.float32)
    nodes[0, :, 0] = [0, 10, 20, 30]
    hidden = np.empty((4, 2), np.float32)
    hidden_rows(sums, nodes, PATHS, np.array([0, 2, 3, 4]), 1, 4, hidden)
    assert hidden.tolist() == [[1, 0], [31, 0], [12, 2], [22, 2]]


def test_responsibilities_are_shares_of_the_probability() -> None:
    total = np.log(np.array([[0.1, 0.3], [0.5, 0.0001], [1, 1]], np.float32))
    loss = responsibilities(total, 2)
    np.testing.assert_allclose(total[:2], [[0.25, 0.75], [0.9998, 0.0002]], atol=1e-5)
    assert total[2].tolist() == [0, 0]
    assert loss == pytest.approx(-np.log(0.4) - np.log(0.5001), rel=1e-5)
