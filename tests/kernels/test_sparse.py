"""Products with a few rows of a matrix, against numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from pathdex.kernels.sparse import block_sum, gather_relu, gather_sum, row_gradient, scatter_add
from pathdex.kernels.types import Floats, Ints


@njit
def every(
    weights: Floats,
    columns: Ints,
    count: int,
    matrix: Floats,
    vectors: Floats,
    row: int,
    results: Floats,
    target: Floats,
) -> None:
    gather_sum(weights, columns, count, matrix, results, 0)
    gather_relu(weights, columns, count, matrix, vectors, row, results, 1)
    scatter_add(weights, columns, count, vectors, row, target)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 150), st.integers(0, 6), st.integers(0, 99))
def test_rows_of_any_width(width: int, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    weights, columns = random.normal(size=8).astype(np.float32), random.integers(0, 5, 8)
    matrix, vectors = (random.normal(size=(5, width)).astype(np.float32) for _ in range(2))
    results, target = np.full((4, width), 7, np.float32), matrix.copy()
    every(weights, columns, count, matrix, vectors, 3, results, target)

    total = weights[:count] @ matrix[columns[:count]]
    np.testing.assert_allclose(results[0], total, atol=1e-5)
    np.testing.assert_allclose(results[1], np.maximum(vectors[3] + total, 0), atol=1e-5)
    assert (results[2:] == 7).all()
    expected = matrix.copy()
    np.add.at(expected, columns[:count], np.outer(weights[:count], vectors[3]))
    np.testing.assert_allclose(target, expected, atol=1e-5)


@njit
def row(
    weights: Floats,
    columns: Ints,
    count: int,
    vectors: Floats,
    gradient: Floats,
    matrix: Floats,
    targets: Ints,
    nodes: Floats,
    sums: Floats,
) -> None:
    for adds in range(2):
        row_gradient(weights, columns, count, vectors, 3, gradient, matrix, targets, 2, nodes, sums, 1, adds)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 150), st.integers(0, 6), st.integers(0, 99))
def test_the_gradient_of_a_row_of_any_width(width: int, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    weights, columns, targets = random.normal(size=8).astype(np.float32), random.integers(0, 5, 8), np.array([4, 0, 1])
    matrix, vectors, gradient, nodes = (random.normal(size=(5, width)).astype(np.float32) for _ in range(4))
    sums, found, onto = np.full((3, width), 7, np.float32), gradient.copy(), nodes.copy()
    row(weights, columns, count, vectors, found, matrix, targets, onto, sums)

    flow = np.where(vectors[3] > 0, weights[:count] @ matrix[columns[:count]], 0)
    np.testing.assert_allclose(sums[1], 2 * flow, atol=1e-5)
    assert (sums[[0, 2]] == 7).all()
    nodes[[4, 0]] += 2 * flow
    np.testing.assert_allclose(onto, nodes, atol=1e-5)
    np.add.at(gradient, columns[:count], 2 * np.outer(weights[:count], vectors[3]))
    np.testing.assert_allclose(found, gradient, atol=1e-5)


@njit
def sum_of_block(matrix: Floats, row: int, column: int) -> np.float32:
    return block_sum(matrix, row, column)


def test_block_sum() -> None:
    matrix = np.arange(96, dtype=np.float32).reshape(2, 48)
    assert sum_of_block(matrix, 1, 16) == matrix[1, 16:32].sum()
