"""Products with a few rows of a matrix, against numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from pathdex.kernels.sparse import block_sum, gather_masked, gather_relu, gather_sum, scatter_add
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
    gather_masked(weights, columns, count, matrix, vectors, row, results, 1)
    gather_relu(weights, columns, count, matrix, vectors, row, results, 2)
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
    np.testing.assert_allclose(results[1], np.where(vectors[3] > 0, total, 0), atol=1e-5)
    np.testing.assert_allclose(results[2], np.maximum(vectors[3] + total, 0), atol=1e-5)
    assert (results[3] == 7).all()
    expected = matrix.copy()
    np.add.at(expected, columns[:count], np.outer(weights[:count], vectors[3]))
    np.testing.assert_allclose(target, expected, atol=1e-5)


@njit
def sum_of_block(matrix: Floats, row: int, column: int) -> np.float32:
    return block_sum(matrix, row, column)


def test_block_sum() -> None:
    matrix = np.arange(96, dtype=np.float32).reshape(2, 48)
    assert sum_of_block(matrix, 1, 16) == matrix[1, 16:32].sum()
