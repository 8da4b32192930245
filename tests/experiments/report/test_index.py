"""Parts 3 and 5 of a report: sensitivity, loss, health and training."""

from __future__ import annotations

from pathdex.experiments.report.document import Figure
from pathdex.experiments.report.index import NAMES, index_parts, sensitivity_parts
from pathdex.experiments.reproduce import Report
from pathdex.tables import TextTable


def test_loss_health_and_training(report: Report) -> None:
    parts = index_parts(report.results)
    assert [part.name for part in parts if isinstance(part, Figure)] == ["loss", "health", "training"]
    loss, health = (part for part in parts if isinstance(part, TextTable))
    assert [row[:2] for row in loss.rows] == [
        [seen, candidates] for seen in ("removed", "kept") for candidates in ("15", "30", "60")
    ]
    assert [row[0] for row in health.rows] == ["0", "1"]


def test_without_deep_retrieval_there_is_nothing_to_show(report: Report) -> None:
    assert index_parts({**report.results, "loss": [], "training": []}) == []


def test_one_table_per_hyper_parameter_with_the_base_value_in_bold(report: Report) -> None:
    tables = [part for part in sensitivity_parts(report.results) if isinstance(part, TextTable)]
    assert [table.title for table in tables] == [f"{title}, in %" for _, title in NAMES.values()]
    assert all(len(table.bold) == 1 for table in tables)
    for table in tables:
        assert all(len(row) == len(table.head) for row in table.rows)


def test_there_is_no_section_without_a_study(report: Report) -> None:
    assert sensitivity_parts({**report.results, "sensitivity": None}) == []
