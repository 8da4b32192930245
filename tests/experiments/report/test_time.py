"""Part 2 of a report."""

from __future__ import annotations

from pathdex.experiments.report.time import time_parts
from pathdex.experiments.reproduce import Report
from pathdex.tables import TextTable


def test_times_of_every_set_of_options_and_points_of_the_curves(report: Report) -> None:
    times, points = (part for part in time_parts(report.results) if isinstance(part, TextTable))
    assert [row[:2] for row in times.rows] == [
        ["item-cf", ""],
        ["deep-retrieval", "candidates 30"],
        ["deep-retrieval", "candidates 15"],
        ["deep-retrieval", "candidates 60"],
        ["brute-force", ""],
    ]
    assert times.bold == [1]
    assert [row[0] for row in points.rows].count("deep-retrieval") == 3
