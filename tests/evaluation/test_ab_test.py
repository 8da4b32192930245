"""Ratios, shares and waiting times against figures computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.errors import DataError
from pathdex.evaluation.ab_test import (
    Estimate,
    UserRatio,
    kaplan_meier,
    mean_of,
    relative_difference,
    share,
    user_ratio,
)


def test_a_ratio_of_sums() -> None:
    ratio = user_ratio([1, 2, 0], [2, 4, 2])
    assert ratio.value == 3 / 8
    assert ratio.estimate().low <= 3 / 8 <= ratio.estimate().high  # type: ignore[operator]


def test_equal_users_leave_no_doubt() -> None:
    assert user_ratio([1] * 50, [4] * 50).estimate() == Estimate(0.25, 0.25, 0.25)


def test_the_interval_is_that_of_independent_users() -> None:
    """For one view per user it is close to that of a share."""
    finished = np.arange(1000) < 300
    estimate = user_ratio(finished, np.ones(1000)).estimate()
    assert (estimate.low, estimate.high) == pytest.approx((0.3 - 0.0284, 0.3 + 0.0284), abs=0.003)


def test_users_and_not_views_are_resampled() -> None:
    """Ten users with a hundred equal views each are ten observations."""
    few = user_ratio([100] * 5 + [0] * 5, [100] * 10).estimate()
    assert few.high - few.low > 0.4  # type: ignore[operator]


def test_no_users_is_an_error() -> None:
    with pytest.raises(DataError, match="denominator=0: must have a positive sum; the arm had no users"):
        user_ratio([], [])


def test_relative_differences() -> None:
    first, second = user_ratio([3] * 40, [10] * 40, seed=1), user_ratio([2] * 40, [10] * 40, seed=2)
    estimate, p = relative_difference(first, second)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((0.5, 0.5, 0.5))
    assert p == pytest.approx(2 / 2001)


def test_no_difference_has_a_large_p() -> None:
    values = np.random.default_rng(0).random(400)
    estimate, p = relative_difference(*(user_ratio(values, np.ones(400), seed=seed) for seed in (1, 2)))
    assert estimate.low < 0 < estimate.high  # type: ignore[operator]
    assert p > 0.5


def test_nothing_to_compare_with() -> None:
    nothing = UserRatio(0.0, np.zeros(10))
    assert relative_difference(UserRatio(1.0, np.ones(10)), nothing) == (Estimate(None, None, None), 1.0)


def test_wilson_by_hand() -> None:
    """Of 10, 5: centre (5 + z^2 / 2) / (10 + z^2), half-width z / (10 + z^2) sqrt(25 / 10 + z^2 / 4)."""
    z = 1.959964
    half = z / (10 + z**2) * np.sqrt(2.5 + z**2 / 4)
    found = share(5, 10)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5 - half, 0.5 + half))
    assert share(0, 0) == Estimate(None, None, None)


def test_means() -> None:
    assert mean_of([]) == Estimate(None, None, None)
    assert mean_of([2.0]) == Estimate(2.0, None, None)
    found = mean_of([1.0, 3.0])
    assert (found.value, found.high) == pytest.approx((2.0, 2.0 + 12.7062), rel=1e-4)


def test_kaplan_meier_by_hand() -> None:
    """Five wait; ends at 1, 2 and 4, one was last seen at 3 and one at 5: 4/5, 3/5, and 3/5 * 1/2."""
    curve = kaplan_meier([1, 2, 3, 4, 5], [True, True, False, True, False])
    assert curve.times.tolist() == [1, 2, 4]
    assert curve.waiting == pytest.approx([0.8, 0.6, 0.3])
    assert (curve.count, curve.ended) == (5, 3)
    assert curve.quantile(0.2).value == 1
    assert curve.quantile(0.5).value == 4
    assert curve.quantile(0.9).value is None
    assert curve.ended_by(0.5) == Estimate(0.0, None, None)
    assert curve.ended_by(3.0).value == pytest.approx(0.4)
    assert (curve.low <= curve.waiting).all()
    assert (curve.waiting <= curve.high).all()


def test_without_censoring_it_is_the_empirical_distribution() -> None:
    curve = kaplan_meier([1, 1, 2, 3], [True] * 4)
    assert curve.waiting == pytest.approx([0.5, 0.25, 0.0])
    assert curve.quantile(0.5).value == 1


def test_greenwood_by_hand() -> None:
    """At the first of ten ends: S = 0.9, variance of log(-log S) = (1 / (10 * 9)) / log(0.9)^2."""
    curve = kaplan_meier(np.arange(1, 11), np.ones(10))
    width = 1.959964 * np.sqrt(1 / 90) / abs(np.log(0.9))
    assert curve.low[0] == pytest.approx(0.9 ** np.exp(width), rel=1e-4)
    assert curve.high[0] == pytest.approx(0.9 ** np.exp(-width), rel=1e-4)


def test_nothing_ended() -> None:
    curve = kaplan_meier([5.0, 6.0], [False, False])
    assert curve.ended_by(10.0) == Estimate(0.0, None, None)
    assert curve.quantile(0.1) == Estimate(None, None, None)
