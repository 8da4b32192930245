"""The gradient of the structure loss, by hand and against draws row by row."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.draws import draw_row
from pathdex.kernels.path_gradient import pair, sampled_gradient
from pathdex.kernels.path_loss import prefix_rows


def test_pairs_of_layers_are_numbered_by_the_later_one() -> None:
    assert [pair(before, layer) for layer in range(4) for before in range(layer)] == list(range(6))


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
        np.array([0, 1]),
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


def gradient_by_rows(
    shares: np.ndarray, rows: np.ndarray, paths: np.ndarray, each: np.ndarray, offsets: np.ndarray, draws: int
) -> np.ndarray:
    """The gradient with respect to the logits (row, K) of the last layer, sample by sample and row by row."""
    result = np.zeros_like(shares)
    columns, counts = np.empty(draws + 2, np.int64), np.empty(draws + 2, np.float32)
    for i in range(len(paths)):
        place = np.array([0, offsets[i]], np.float32)
        for row in range(rows[i].min(), rows[i].max() + 1):
            own, rest = [j for j in range(paths.shape[1]) if rows[i, j] == row], shares.copy()
            weight = np.float32(0)
            for j in own:
                weight += each[i, j]
                rest[row, paths[i, j, -1]] = 0
            made = draw_row(rest, row, np.float32(draws) * weight, place, columns, counts, 0)
            result[row, columns[:made]] = counts[:made] / np.float32(draws)
            for j in own:
                first = paths[i, j, -1] not in paths[i, own[: own.index(j)], -1]
                result[row, paths[i, j, -1]] += (weight * shares[row, paths[i, j, -1]] if first else 0) - each[i, j]
    return result


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 40), st.integers(1, 4), st.sampled_from([3, 16, 37]), st.sampled_from([0.1, 3]), st.integers(0, 99)
)
def test_entries_are_those_of_draws_row_by_row(n: int, size: int, nodes: int, spread: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    paths, depth = random.integers(0, nodes, (n, size, 2)), 2
    rows, owners = np.empty((depth, n, size), np.int64), np.empty(n * size, np.int64)
    prefix_rows(paths, 0, rows, owners)
    count = prefix_rows(paths, 1, rows, owners)
    shares = np.zeros((count, -(-nodes // 16) * 16), np.float32)
    shares[:, :nodes] = random.dirichlet(np.full(nodes, spread), count)
    each, offsets = random.dirichlet(np.ones(size), n).astype(np.float32), random.random(n, np.float32)
    expected = gradient_by_rows(shares, rows[1], paths, each, offsets, 16)

    # With the identity as hidden units, the gradient of the weights is that of the logits.
    hidden, outputs = np.eye(count, dtype=np.float32), np.zeros((nodes, count), np.float32)
    sums, nodes_gradient = np.zeros((n, depth, count), np.float32), np.zeros((1, nodes, count), np.float32)
    found, bias = np.zeros((nodes, count), np.float32), np.zeros(shares.shape[1], np.float32)
    arguments = shares, rows[1], owners[:count], paths, 1, each, offsets, 16, hidden, outputs
    sampled_gradient(*arguments, sums, nodes_gradient, found, bias)
    np.testing.assert_allclose(found.T, expected[:, :nodes], atol=1e-6)
    np.testing.assert_allclose(bias, expected.sum(axis=0), atol=1e-4)
