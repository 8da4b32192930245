"""The sections of a report and its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathdex.experiments.report.pages import _source_versions, make_document, write_report
from pathdex.experiments.reproduce import Report


def test_the_subtitle_gives_the_sizes(report: Report) -> None:
    document = make_document(report.results)
    assert document.title == "Deep Retrieval and baselines on rows.parquet"
    assert "12 test users in each of 2 seeds; n = 3." in document.subtitle
    assert document.subtitle.endswith("**Quick run: few epochs and users, nothing tuned. Do not cite these figures.**")


def test_empty_sections_are_left_out(report: Report) -> None:
    titles = [section.title for section in make_document({**report.results, "sensitivity": None}).sections]
    assert "Sensitivity" not in titles
    assert titles[0] == "Comparison"


def test_the_same_results_give_the_same_files(report: Report, tmp_path: Path) -> None:
    page, markdown = write_report(report.results, tmp_path)
    assert page.read_text() == report.html.read_text()
    assert markdown.read_text() == report.markdown.read_text()


@pytest.mark.parametrize(
    ("codes", "text"),
    [
        (["a1", "a1"], "all steps with source a1"),
        (["a1", "b2", "a1"], "steps ran with 2 versions of the source: 2 with a1, 1 with b2"),
        ([None, "a1"], "steps ran with 2 versions of the source: 1 with an unrecorded version, 1 with a1"),
    ],
)
def test_different_versions_of_the_source_are_listed(codes: list[str | None], text: str) -> None:
    assert _source_versions(codes) == text
