"""Softmax and log-sum-exp of padded rows against numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from pathdex.kernels.gemm import LANES
from pathdex.kernels.softmax import PADDING, log_sum_exp_row, softmax_row

rows = st.lists(st.floats(-60, 60, width=32), min_size=1, max_size=3 * LANES)


@njit
def call_softmax(values: np.ndarray, row: int) -> None:
    softmax_row(values, row)


@njit
def call_log_sum_exp(values: np.ndarray, row: int) -> np.float32:
    return log_sum_exp_row(values, row)


def padded(values: list[float]) -> np.ndarray:
    """Two padded rows; the values are in the second."""
    table = np.full((2, -(-len(values) // LANES) * LANES), PADDING, np.float32)
    table[1, : len(values)] = values
    return table


@settings(max_examples=50, deadline=None)
@given(rows)
def test_softmax_equals_numpy_and_padding_has_no_share(values: list[float]) -> None:
    table = padded(values)
    before = table[0].copy()
    call_softmax(table, 1)
    exact = np.exp(np.array(values, np.float64) - max(values))
    np.testing.assert_allclose(table[1, : len(values)], exact / exact.sum(), rtol=1e-5, atol=1e-29)
    assert (table[1, len(values) :] < 1e-29).all()
    assert (table[0] == before).all()


@settings(max_examples=50, deadline=None)
@given(rows)
def test_log_sum_exp_equals_numpy(values: list[float]) -> None:
    table = padded(values)
    before = table.copy()
    np.testing.assert_allclose(
        call_log_sum_exp(table, 1), np.logaddexp.reduce(np.array(values, np.float64)), rtol=1e-5, atol=1e-5
    )
    assert (table == before).all()
