"""Compiled arithmetic against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.arithmetic import (
    add_product,
    dot,
    exponentiate,
    highest,
    sigmoid,
)
from pathdex.kernels.topk import kth_largest

numbers = st.lists(st.floats(-80, 80, width=32), min_size=1, max_size=40)


@settings(max_examples=50, deadline=None)
@given(numbers)
def test_exponentials_and_sigmoids_are_those_of_numpy(values: list[float]) -> None:
    exact = np.array(values, np.float64)
    bits = np.empty(len(values), np.int32)
    got = np.array(values, np.float32)
    exponentiate(got, len(got), bits)
    # Half a unit in the last place of x is 80 x 2^-24 in the exponent.
    np.testing.assert_allclose(got, np.exp(exact), rtol=1e-5)
    got = np.array(values, np.float32)
    sigmoid(got, len(got), bits)
    np.testing.assert_allclose(got, 1 / (1 + np.exp(-exact)), rtol=1e-5)


def test_exponentials_outside_the_range_of_floats_stay_finite() -> None:
    got = np.array([-1e6, 1e6], np.float32)
    exponentiate(got, 2, np.empty(2, np.int32))
    assert 0 < got[0] < 1e-37
    assert 1e37 < got[1] < np.inf


@pytest.mark.parametrize("inputs", [1, 3, 4, 9])
def test_products_are_those_of_numpy(inputs: int) -> None:
    random = np.random.default_rng(0)
    vector, matrix = random.normal(size=inputs).astype(np.float32), random.normal(size=(inputs, 5)).astype(np.float32)
    result = np.ones(5, np.float32)
    add_product(vector, matrix, result)
    np.testing.assert_allclose(result, 1 + vector @ matrix, rtol=1e-5)
    assert dot(vector, vector) == pytest.approx(float(vector @ vector), rel=1e-5)


@settings(max_examples=50, deadline=None)
@given(numbers, st.data())
def test_the_kth_largest_is_that_of_a_sort(values: list[float], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(values)))
    k = data.draw(st.integers(1, count))
    array = np.array(values, np.float32)
    assert highest(array, count) == max(values[:count])
    assert kth_largest(array, count, k) == sorted(values[:count], reverse=True)[k - 1]
