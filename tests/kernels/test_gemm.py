"""Tiled products against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.gemm import BLOCKS, LANES, ROWS, dot, gemm_accumulate, gemv_accumulate


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(0, 2 * ROWS + 1),
    inputs=st.integers(0, 9),
    columns=st.integers(1, (BLOCKS + 2) * LANES),
    spare=st.integers(0, 2),
    seed=st.integers(0, 99),
)
def test_products_equal_numpy_and_other_rows_are_untouched(
    rows: int, inputs: int, columns: int, spare: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(rows + spare, inputs)).astype(np.float32)
    matrix = random.normal(size=(inputs, columns)).astype(np.float32)
    results = np.ones((rows + spare, columns), np.float32)
    gemm_accumulate(vectors, rows, matrix, results)
    np.testing.assert_allclose(results[:rows], 1 + vectors[:rows] @ matrix, rtol=1e-4, atol=1e-5)
    assert (results[rows:] == 1).all()


def test_a_row_has_the_same_bits_in_any_tile() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(ROWS + 1, 64)).astype(np.float32)
    matrix = random.normal(size=(64, (BLOCKS + 1) * LANES)).astype(np.float32)
    together, alone = np.zeros((2, len(vectors), matrix.shape[1]), np.float32)
    gemm_accumulate(vectors, len(vectors), matrix, together)
    for row in range(len(vectors)):
        gemv_accumulate(vectors[row], matrix, alone[row])
    assert (together == alone).all()


def test_a_product_by_hand() -> None:
    result = np.array([1.0, 1.0], np.float32)
    gemv_accumulate(np.array([2.0, 3.0], np.float32), np.array([[1, 0], [10, 5]], np.float32), result)
    assert result.tolist() == [1 + 2 + 30, 1 + 15]
    assert dot(np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)) == pytest.approx(32)
