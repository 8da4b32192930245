"""Part 4 of a report."""

from __future__ import annotations

from pathdex.experiments.report.document import Text
from pathdex.experiments.report.popularity import popularity_parts
from pathdex.experiments.reproduce import Report
from pathdex.tables import TextTable


def test_shares_by_decile_and_tests_of_the_long_tail(report: Report) -> None:
    deciles, tests = (part for part in popularity_parts(report.results) if isinstance(part, TextTable))
    assert [row[0] for row in deciles.rows] == ["item-cf", "deep-retrieval", "brute-force", "truth"]
    assert [row[0] for row in tests.rows] == ["item-cf", "brute-force"]
    assert {row[-1] for row in tests.rows} <= {"more", "less", "no difference"}


def test_without_other_methods_nothing_is_tested(report: Report) -> None:
    popularity = {**report.results["popularity"], "tail_tests": []}
    parts = popularity_parts({**report.results, "popularity": popularity})
    assert Text("There is no other method to test against.") in parts
    assert sum(isinstance(part, TextTable) for part in parts) == 1
