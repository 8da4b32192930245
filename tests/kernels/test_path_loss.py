"""The parts of the structure loss that a person can check by hand."""

import numpy as np
import pytest

from pathdex.kernels.path_loss import hidden_rows, pair, prefix_rows, responsibilities, sampled_gradient

PATHS = np.array([[[0, 1], [0, 2], [3, 1]], [[1, 1], [2, 1], [1, 3]]])


def test_paths_with_the_same_prefix_share_a_row() -> None:
    rows, owners = np.empty((3, 2, 3), np.int64), np.empty(6, np.int64)
    assert prefix_rows(PATHS, 0, rows, owners) == 2
    assert prefix_rows(PATHS, 1, rows, owners) == 4
    assert rows[:2].tolist() == [[[0, 0, 0], [1, 1, 1]], [[0, 0, 1], [2, 3, 2]]]
    assert owners[:4].tolist() == [0, 2, 3, 4]
    assert prefix_rows(PATHS, 2, rows, owners) == 6


def test_pairs_of_layers_are_numbered_by_the_later_one() -> None:
    assert [pair(before, layer) for layer in range(4) for before in range(layer)] == list(range(6))


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


def test_the_gradient_is_exact_for_targets_and_drawn_for_other_nodes() -> None:
    shares = np.zeros((2, 16), np.float32)
    shares[:, :4] = [0.5, 0.25, 0.125, 0.125]
    paths, rows = np.array([[[0, 1], [1, 2]]]), np.array([[0, 1]])
    hidden, outputs = np.array([[1, 0], [2, 3]], np.float32), np.eye(4, 2, dtype=np.float32)
    sums, nodes = np.full((1, 2, 2), 9, np.float32), np.zeros((1, 4, 2), np.float32)
    weights, bias = np.zeros((4, 2), np.float32), np.zeros(16, np.float32)
    each = np.array([[0.75, 0.25]], np.float32)
    arguments = (
        shares,
        rows,
        paths,
        1,
        each,
        np.array([0.4], np.float32),
        8,
        hidden,
        outputs,
        sums,
        nodes,
        weights,
        bias,
    )
    sampled_gradient(*arguments)
    # In units of draws the nodes end at 3, 3.75 and 4.5, then at 5.5, 6 and 6.25; the points are 0.4, 1.4, ..., 5.4.
    first = np.array([3 / 8, 0.75 * 0.25 - 0.75, 1 / 8, 1 / 8])
    second = np.array([1 / 8, 0, 0.25 * 0.125 - 0.25, 0])
    np.testing.assert_allclose(bias[:4], first + second, atol=1e-6)
    np.testing.assert_allclose(weights, np.outer(first, hidden[0]) + np.outer(second, hidden[1]), atol=1e-6)
    flow = np.array([first @ outputs, second @ outputs]) * (hidden > 0)
    np.testing.assert_allclose(sums[0], [[9, 9], flow.sum(axis=0)], atol=1e-6)
    np.testing.assert_allclose(nodes[0, :2], flow, atol=1e-6)
    assert shares[0, 1] == 0 == shares[1, 2]
