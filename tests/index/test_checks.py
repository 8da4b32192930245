"""Each check, its limits and its message."""

import numpy as np
import pytest

from pathdex.errors import ConfigError, DataError, Problem
from pathdex.index.checks import check_int, check_number, int_array, path_array, score_array


def test_whole_numbers_of_any_kind_pass():
    assert check_int("n", 3) == check_int("n", np.int32(3)) == 3
    assert check_int("n", 0, low=0) == 0


@pytest.mark.parametrize("value", [0, -1, 2.0, "3", None, True])
def test_other_values_are_refused_with_argument_value_rule_and_remedy(value):
    with pytest.raises(ConfigError) as caught:
        check_int("n", value)
    assert caught.value.problems == (Problem("must be a whole number of at least 1", "n", value, "pass one"),)
    assert f"n={value!r}: must be a whole number of at least 1; pass one" in str(caught.value)


def test_numbers_between_the_limits_pass():
    assert check_number("x", 2, low=2.0) == 2.0
    assert check_number("x", np.float32(0.5), low=0.0, high=1.0) == 0.5


@pytest.mark.parametrize(
    ("value", "high", "message"),
    [
        (-0.1, np.inf, "x=-0.1: must be a finite number at least 0; pass one"),
        (1.5, 1.0, "x=1.5: must be a finite number between 0 and 1; pass one"),
        (np.inf, np.inf, "x=inf: must be a finite number at least 0; pass one"),
        (np.nan, 1.0, "x=nan: must be a finite number between 0 and 1; pass one"),
        (True, 1.0, "x=True: must be a finite number between 0 and 1; pass one"),
        ("1", 1.0, "x='1': must be a finite number between 0 and 1; pass one"),
    ],
)
def test_numbers_outside_the_limits_are_refused(value, high, message):
    with pytest.raises(ConfigError) as caught:
        check_number("x", value, low=0.0, high=high)
    assert message in str(caught.value)


def test_arrays_become_contiguous_with_the_right_type():
    codes = int_array("codes", np.arange(6, dtype=np.int16).reshape(2, 3).T, 3, None)
    assert codes.dtype == np.int64
    assert codes.flags.c_contiguous
    assert codes.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert score_array("scores", [1, 2], 2).dtype == np.float32
    assert score_array("scores", np.empty((0, 3)), None, 3).shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: int_array("codes", [0.5], None), "codes: has dtype float64, must hold whole numbers; convert it with"),
        (lambda: int_array("codes", [1], None, None), "codes: has shape (1,), must have shape (any, any); reshape it"),
        (lambda: int_array("codes", [[1]], 2, None), "codes: has shape (1, 1), must have shape (2, any); reshape it"),
        (lambda: int_array("codes", [-2], None, low=-1), "codes: holds -2, must hold no value below -1; check how"),
        (lambda: score_array("scores", [-1.0], None), "scores: must hold finite values of at least 0; pass"),
        (lambda: score_array("scores", [np.nan], None), "scores: must hold finite values of at least 0; pass"),
        (lambda: path_array("paths", np.empty((0, 2), int)), "paths: has shape (0, 2), must hold at least one item"),
    ],
)
def test_other_arrays_are_refused(call, message):
    with pytest.raises(DataError) as caught:
        call()
    assert message in str(caught.value)
