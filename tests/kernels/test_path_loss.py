"""The parts of the structure loss that a person can check by hand."""

import numpy as np
import pytest

from pathdex.kernels.path_loss import hidden_rows, logit_gradient, prefix_rows, responsibilities

PATHS = np.array([[[0, 1], [0, 2], [3, 1]], [[1, 1], [2, 1], [1, 3]]])


def test_paths_with_the_same_prefix_share_a_row() -> None:
    first = np.array([[0, 0, 0], [1, 1, 1]])
    rows, owners = np.empty_like(first), np.empty(6, np.int64)
    assert prefix_rows(PATHS, 1, first, rows, owners) == 4
    assert rows.tolist() == [[0, 0, 1], [2, 3, 2]]
    assert owners[:4].tolist() == [0, 2, 3, 4]
    whole = np.empty_like(first)
    assert prefix_rows(PATHS, 2, rows, whole, owners) == 6


def test_hidden_rows_add_the_nodes_before_the_layer() -> None:
    sums = np.array([[[9, 9], [1, -5]], [[9, 9], [2, 2]]], np.float32)  # two layers of two hidden units
    nodes = np.zeros((2, 4, 2, 2), np.float32)
    nodes[0, :, 1, 0] = [0, 10, 20, 30]
    hidden = np.empty((4, 2), np.float32)
    hidden_rows(sums, nodes, PATHS, np.array([0, 2, 3, 4]), 1, hidden)
    assert hidden.tolist() == [[1, 0], [31, 0], [12, 2], [22, 2]]


def test_responsibilities_are_shares_of_the_probability() -> None:
    total = np.log(np.array([[0.1, 0.3], [0.5, 0.0001]], np.float32))
    loss = responsibilities(total)
    np.testing.assert_allclose(total, [[0.25, 0.75], [0.9998, 0.0002]], atol=1e-5)
    assert loss == pytest.approx(-np.log(0.4) - np.log(0.5001), rel=1e-5)


def test_rows_with_a_negligible_share_get_no_gradient() -> None:
    shares = np.full((4, 16), 0.25, np.float32)
    rows, each = np.array([[0, 0, 1], [2, 3, 2]]), np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]], np.float32)
    weights, kept = np.empty(4, np.float32), np.empty(4, np.int64)
    gradient, bias = np.empty((4, 16), np.float32), np.zeros(16, np.float32)
    made = logit_gradient(shares, rows, PATHS, 1, each, np.float32(0.1), weights, kept, gradient, bias)
    assert kept[:made].tolist() == [0, 2, 3]
    np.testing.assert_allclose(gradient[0, :4], [0.25, 0.25 - 0.5, 0.25 - 0.5, 0.25], atol=1e-6)
    np.testing.assert_allclose(gradient[1, :4], [0.05, 0.05 - 0.2, 0.05, 0.05], atol=1e-6)
    np.testing.assert_allclose(bias, gradient[:made].sum(axis=0), atol=1e-6)
