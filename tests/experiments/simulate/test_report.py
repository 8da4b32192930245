"""The document has every part, in HTML and Markdown."""

from __future__ import annotations

from typing import Any

import pytest

from pathdex.experiments.report.document import to_html, to_markdown
from pathdex.experiments.simulate.metrics import measure
from pathdex.experiments.simulate.report import interval, make_simulation_document
from pathdex.experiments.simulate.simulation import Outcome

PROVENANCE = {
    "command": "pathdex simulate --out report",
    "machine": {"processor": "P", "cores": 2, "memory": None, "system": "S", "load_average": None},
    "versions": {"python": "3.11", "usearch": None},
    "threads": 1,
    "code": "abc",
    "seconds": 61.0,
}


@pytest.fixture(scope="module")
def results(outcome: Outcome) -> dict[str, Any]:
    base = {"quick": True, "options": outcome.options.to_dict(), "broker": "a file", "provenance": PROVENANCE}
    return {**base, **measure(outcome)}


def test_the_report_in_both_forms(results: dict[str, Any]) -> None:
    document = make_simulation_document(results)
    page, text = to_html(document), to_markdown(document, "figures")
    for words in ("Quick run", "Kaplan-Meier", "A/A test", "Events went through a file.", "Wall time: 1 min 1 s"):
        assert words in page
        assert words in text
    assert page.count("<svg") == 4
    assert "| streaming |" in text
    assert "`pathdex simulate --out report`" in text


def test_two_arms_without_the_baseline_have_no_differences(results: dict[str, Any]) -> None:
    arms = [row for row in results["arms"] if row["arm"] in ("oracle", "random")]
    fewer = {**results, "arms": arms, "differences": [], "a_a_test": [], "quick": False}
    text = to_markdown(make_simulation_document(fewer), "figures")
    assert "Difference to ffm-hnsw, with" not in text
    assert "Quick run" not in text


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        ((None, None, None), "-"),
        ((0.1, None, None), "10.00"),
        ((0.1, 0.05, 0.2), "10.00 (5.00 to 20.00)"),
        ((0.1, 0.05, None), "10.00 (5.00 to never)"),
    ],
)
def test_intervals(estimate: tuple[float | None, ...], text: str) -> None:
    assert interval(dict(zip(("value", "low", "high"), estimate, strict=True))) == text
