"""Part 1 of a report."""

from __future__ import annotations

from pathdex.experiments.report.comparison import comparison_parts
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
