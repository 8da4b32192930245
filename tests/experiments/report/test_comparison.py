"""Parts 1, 2 and 4 of a report: accuracy, time and popularity."""

from __future__ import annotations

from pathdex.experiments.report.comparison import comparison_parts, popularity_parts, time_parts
from pathdex.experiments.report.document import Points, Text
from pathdex.experiments.reproduce import Report
from pathdex.tables import TextTable


def tables(report: Report) -> list[TextTable]:
    return [part for part in comparison_parts(report.results) if isinstance(part, TextTable)]


def test_accuracy_and_tests_with_seen_items_removed_and_kept(report: Report) -> None:
    assert [table.title for table in tables(report)] == [
        "Accuracy in %, seen items removed, mean ± standard deviation of 2 seeds",
        "Accuracy in %, seen items kept, mean ± standard deviation of 2 seeds",
        "Difference in F in %, seen items removed",
        "Difference in F in %, seen items kept",
    ]


def test_the_main_row_of_deep_retrieval_is_bold(report: Report) -> None:
    accuracy = tables(report)[0]
    (number,) = accuracy.bold
    assert list(accuracy.rows[number][:2]) == ["deep-retrieval", "candidates 30"]


def test_trials_are_listed_with_the_selected_one_in_bold(report: Report) -> None:
    trials = [
        {"parameters": {}, "f_measure": 0.1, "fit_seconds": 1.0, "chosen": False},
        {"parameters": {"neighbours": 100}, "f_measure": 0.2, "fit_seconds": 2.0, "chosen": True},
    ]
    parts = comparison_parts({**report.results, "tuning": {"item-cf": trials}})
    table = [part for part in parts if isinstance(part, TextTable)][-1]
    assert table.title == "Hyper-parameters selected on validation data of seed 0"
    assert table.rows == [["item-cf", "defaults", "10.00", "1", ""], ["item-cf", "neighbours 100", "20.00", "2", "yes"]]
    assert table.bold == [1]


def test_without_tuning_and_with_a_missing_method(report: Report) -> None:
    parts = comparison_parts({**report.results, "missing": {"tdm": "needs torch"}})
    assert Text("Nothing was tuned: every method uses its defaults or the given hyper-parameters.") in parts
    assert parts[-1] == Points(["`tdm` was left out: needs torch"])


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
