"""Part 5 of a report."""

from __future__ import annotations

from pathdex.experiments.report.document import Figure
from pathdex.experiments.report.index import index_parts
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
