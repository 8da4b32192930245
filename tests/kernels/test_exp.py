"""The fast exponential against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from pathdex.kernels.exp import fast_exp, fast_log, sigmoid

numbers = st.lists(st.floats(-80, 80, width=32), min_size=1, max_size=40)


@njit
def exp_of(values: np.ndarray) -> np.ndarray:
    result = np.empty_like(values)
    for k in range(len(values)):
        result[k] = fast_exp(values[k])
    return result


@settings(max_examples=50, deadline=None)
@given(numbers)
def test_exp_and_sigmoid_equal_numpy(values: list[float]) -> None:
    exact = np.array(values, np.float64)
    # Half a unit in the last place of x is 80 x 2^-24 in the exponent.
    np.testing.assert_allclose(exp_of(np.array(values, np.float32)), np.exp(exact), rtol=1e-5)
    got = np.array(values, np.float32)
    sigmoid(got)
    np.testing.assert_allclose(got, 1 / (1 + np.exp(-exact)), rtol=1e-5)


def test_exact_powers() -> None:
    np.testing.assert_allclose(exp_of(np.zeros(1, np.float32)), [1.0], rtol=2e-7)
    np.testing.assert_allclose(exp_of(np.log(np.array([2, 0.5, 8], np.float32))), [2.0, 0.5, 8.0], rtol=1e-6)


def test_results_outside_the_range_of_float32_are_clamped() -> None:
    low, high = exp_of(np.array([-1e6, 1e6], np.float32))
    assert low == pytest.approx(2.0**-126, rel=1e-6)
    assert high == pytest.approx(2.0**126, rel=1e-6)


def test_sigmoid_saturates() -> None:
    values = np.array([-1e6, 0, 1e6], np.float32)
    sigmoid(values)
    assert values.tolist() == [pytest.approx(0.0, abs=1e-37), pytest.approx(0.5), 1.0]


@njit
def log_of(values: np.ndarray) -> np.ndarray:
    result = np.empty_like(values)
    for k in range(len(values)):
        result[k] = fast_log(values[k])
    return result


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(2.0**-100, 2.0**100, width=32), min_size=1, max_size=40))
def test_log_equals_numpy(values: list[float]) -> None:
    got = log_of(np.array(values, np.float32))
    np.testing.assert_allclose(got, np.log(np.array(values, np.float64)), rtol=2e-7, atol=2e-7)


def test_the_logarithm_of_one_is_zero() -> None:
    assert log_of(np.ones(1, np.float32)).tolist() == [0.0]
