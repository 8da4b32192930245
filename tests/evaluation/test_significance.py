"""Paired tests against examples by hand, direct counts and the t test."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from pathdex.errors import DataError
from pathdex.evaluation.significance import holm, paired_test, paired_tests, sign_flip_p, spread


def test_three_equal_gains_by_hand() -> None:
    """Of the 8 sign patterns, only +++ and --- are as far from 0."""
    assert sign_flip_p(np.array([1.0, 1.0, 1.0])) == 2 / 8


def test_users_without_a_difference_change_nothing() -> None:
    assert sign_flip_p(np.array([0.0, 1.0, 0.0, 1.0, 1.0])) == 2 / 8
    assert sign_flip_p(np.zeros(4)) == 1.0


def test_all_patterns_agree_with_a_direct_count() -> None:
    values = np.random.default_rng(0).normal(0.4, 1, 9)
    sums = [abs(np.dot(signs, values)) for signs in itertools.product((-1, 1), repeat=9)]
    assert sign_flip_p(values) == pytest.approx(np.mean(np.array(sums) >= abs(values.sum()) * (1 - 1e-12)))


def test_random_patterns_agree_with_all_patterns() -> None:
    values = np.random.default_rng(3).normal(0.3, 1, 12)
    assert sign_flip_p(values, resamples=4_000) == pytest.approx(sign_flip_p(values), abs=0.03)


def test_with_many_users_p_is_that_of_the_t_test() -> None:
    values = np.random.default_rng(1).normal(0.05, 1, 2000)
    p = sign_flip_p(values)
    assert p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=0.01)
    assert p == sign_flip_p(values)  # seeded


def test_the_observed_pattern_counts_so_p_is_never_0() -> None:
    assert sign_flip_p(np.ones(50)) == 1 / 10_000


def test_the_interval_is_that_of_the_paired_t_test() -> None:
    random = np.random.default_rng(2)
    a, b = random.random(40), random.random(40)
    test = paired_test([a], [b], [range(40)])
    expected = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (test.low, test.high) == pytest.approx((expected.low, expected.high))
    assert test.difference == pytest.approx(a.mean() - b.mean())


def test_a_user_of_several_seeds_counts_once_with_the_mean() -> None:
    """User x gains 1 and 3, user y gains 2: two users, each with a gain of 2."""
    test = paired_test([[1.0, 5.0], [4.0]], [[0.0, 3.0], [1.0]], [["x", "y"], ["x"]])
    assert (test.users, test.difference) == (2, 2.0)
    assert test.by_seed == (1.5, 3.0)
    assert test.p == 2 / 4


def test_more_seeds_with_the_same_users_do_not_lower_p() -> None:
    gains = np.array([0.3, 0.1, 0.2, 0.4])
    once = paired_test([gains], [np.zeros(4)], [range(4)])
    thrice = paired_test([gains] * 3, [np.zeros(4)] * 3, [range(4)] * 3)
    assert once.p == thrice.p == 2 / 16


def test_holm_by_hand() -> None:
    """0.01 x 4, then 0.02 x 3, then 0.03 x 2; 0.04 x 1 is raised to the one before."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_spread() -> None:
    assert spread([1.0, 3.0]) == (2.0, pytest.approx(2**0.5))
    assert spread([1.0]) == (1.0, None)


def test_what_cannot_be_tested() -> None:
    with pytest.raises(DataError, match=r"^values=\[\]: must hold at least one number$"):
        spread([])
    with pytest.raises(DataError, match=r"^users=\[\]: must hold at least one user; hold out more users$"):
        paired_test([], [], [])
    with pytest.raises(
        DataError, match=r"^seed number 1 has values of shape \(2,\) for 3 users; pass one value per user$"
    ):
        paired_test([[1.0, 2.0]], [[1.0, 2.0]], [["a", "b", "c"]])


def test_several_tests_are_corrected_for_their_number() -> None:
    better, equal = [np.arange(1.0, 9.0)], [np.zeros(8)]
    single = paired_test(better, equal, [range(8)])
    assert single.p_holm == single.p
    first, second = paired_tests([(better, equal), (equal, equal)], [range(8)])
    assert (first.p, first.p_holm) == (single.p, 2 * single.p)
    assert (second.p, second.p_holm) == (1.0, 1.0)
