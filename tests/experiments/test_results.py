"""What is derived from the finished steps; `test_reproduce` checks the results as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from pathdex.experiments.reproduce import Report


def rows_of(report: Report, part: str, method: str) -> list[dict[str, Any]]:
    return [row for row in report.results[part] if row["method"] == method]


def test_the_main_options_come_first(report: Report) -> None:
    rows = [row for row in rows_of(report, "comparison", "deep-retrieval") if row["filter_seen"]]
    assert [(row["options"]["candidates"], row["main"]) for row in rows] == [(30, True), (15, False), (60, False)]


def test_times_lie_between_the_lowest_and_the_highest_round(report: Report) -> None:
    for row in report.results["inference_time"]:
        for key in ("seconds_per_query", "seconds_per_query_in_batches"):
            assert row[f"{key}_low"] <= row[key] <= row[f"{key}_high"]


def test_a_method_without_a_curve_has_one_point(report: Report) -> None:
    (point,) = report.results["curves"]["item-cf"]
    own = next(row for row in rows_of(report, "results", "item-cf") if row["filter_seen"] and row["seed"] == 0)
    assert point["f_measure"] == own["f_measure"]
    assert point["seconds_per_query"] == own["seconds_per_query"]


def test_every_studied_value_except_the_base_is_tested(report: Report) -> None:
    for rows in report.results["sensitivity"].values():
        for row in rows:
            assert row["base"] == ("p_holm" not in row)
            assert "f_measure_by_user" not in row


def test_wider_beams_than_the_best_are_tested_for_a_fall(report: Report) -> None:
    rows = report.results["sensitivity"]["beam_size"]
    best = max(range(len(rows)), key=lambda number: rows[number]["f_measure"])
    assert ["p_fall" in row for row in rows] == [number > best for number in range(len(rows))]


def test_the_long_tail_of_the_truth_is_the_mean_of_the_splits(report: Report) -> None:
    truth = report.results["popularity"]["truth"]
    assert sum(truth["deciles"][2:]) == pytest.approx(truth["tail"])


def test_training_records_come_with_the_health_of_the_index(report: Report) -> None:
    rows = report.results["training"]
    assert {(row["method"], row["seed"]) for row in rows} == {("deep-retrieval", 0), ("deep-retrieval", 1)}
    assert all(row["health"]["used_paths"] > 0 for row in rows)
