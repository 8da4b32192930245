"""Counts of finished work as text."""

from __future__ import annotations

from pathdex.progress import count_text, quantity


def test_counts_with_and_without_a_total() -> None:
    assert (count_text(1000, 2000), count_text(1000, None)) == ("1,000 of 2,000", "1,000")


def test_one_is_singular() -> None:
    assert [quantity(count, "user") for count in (0, 1, 2000)] == ["0 users", "1 user", "2,000 users"]
