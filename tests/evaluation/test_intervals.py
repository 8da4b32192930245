"""Intervals over seeds or users, and the words for them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pathdex.evaluation.intervals import half_width, interval_words, mean_and_half_width, ratio_standard_error


def test_one_seed_has_the_interval_of_its_users() -> None:
    assert half_width(1, None, 0.01) == pytest.approx(0.0196, abs=1e-5)
    assert half_width(1, None, None) is None


def test_several_seeds_have_their_own_interval() -> None:
    # Student's t with 2 degrees of freedom: 4.303.
    assert half_width(3, 0.03, 0.5) == pytest.approx(4.3027 * 0.03 / 3**0.5, rel=1e-4)
    assert half_width(3, None, 0.5) is None


def test_the_interval_of_seeds_is_scipys() -> None:
    values = [0.2, 0.3, 0.25]
    mean, half = mean_and_half_width(values, [None] * 3)
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert mean is not None
    assert half is not None
    assert (mean - half, mean + half) == pytest.approx((low, high))


def test_a_seed_without_a_value_leaves_no_interval() -> None:
    assert mean_and_half_width([0.2, None], [0.1, None]) == (0.2, None)
    assert mean_and_half_width([None], [None]) == (None, None)


def test_the_error_of_a_ratio_is_that_of_the_bootstrap() -> None:
    generator = np.random.default_rng(0)
    below = generator.integers(0, 8, 400)
    above = generator.binomial(below, 0.4)
    draws = generator.integers(0, 400, (2000, 400))
    bootstrap = (above[draws].sum(axis=1) / below[draws].sum(axis=1)).std()
    assert ratio_standard_error(above, below) == pytest.approx(bootstrap, rel=0.1)


def test_one_user_has_no_error() -> None:
    assert ratio_standard_error([1, 0], [2, 0]) is None


def test_the_words_name_what_is_drawn() -> None:
    assert interval_words(1, [0.1]) == "Whiskers: 95% intervals over the test users of one seed."
    assert interval_words(3, [0.1, 0.1]) == "Whiskers: 95% intervals over 3 seeds (Student's t)."
    assert interval_words(3, [0.1, None], "Shaded").startswith("Shaded, where known: ")
    assert interval_words(3, [None, None]) == ""
