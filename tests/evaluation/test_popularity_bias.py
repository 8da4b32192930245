"""Deciles, tails and novelty by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.evaluation.popularity_bias import decile_shares, novelty, popularity_deciles, tail_shares

COUNTS = np.array([5, 90, 1, 40, 7, 0, 60, 5, 20, 3])
"""Ten items, so each is a decile: 1, 6, 3, 8, 4, 0, 7, 9, 2, 5 by falling count."""


def test_deciles_follow_the_counts_and_ties_the_codes() -> None:
    assert popularity_deciles(COUNTS).tolist() == [5, 0, 8, 2, 4, 9, 1, 6, 3, 7]


def test_deciles_of_a_catalogue_that_ten_does_not_divide() -> None:
    deciles = popularity_deciles(np.arange(25))
    assert np.bincount(deciles).tolist() == [3, 2, 3, 2, 3, 2, 3, 2, 3, 2]


def test_shares_leave_out_empty_places() -> None:
    shares = decile_shares(np.array([[1, 6, -1], [1, 5, -1]]), popularity_deciles(COUNTS))
    assert shares == [0.5, 0.25, 0, 0, 0, 0, 0, 0, 0, 0.25]
    assert decile_shares(np.full((2, 2), -1), popularity_deciles(COUNTS)) == [0.0] * 10


def test_the_tail_is_all_but_the_first_two_deciles() -> None:
    items = np.array([[1, 6, -1], [1, 3, 5], [-1, -1, -1]])
    assert tail_shares(items, popularity_deciles(COUNTS)).tolist() == [0, pytest.approx(2 / 3), 0]


def test_novelty_counts_bits() -> None:
    """Four items with counts 3, 1, 0, 0 and one added to each: shares 4/8, 2/8, 1/8, 1/8."""
    counts = np.array([3, 1, 0, 0])
    assert novelty(np.array([[0, 1, -1]]), counts) == 1.5
    assert novelty(np.array([[2, 3]]), counts) == 3.0
    assert novelty(np.array([[-1]]), counts) == 0.0
