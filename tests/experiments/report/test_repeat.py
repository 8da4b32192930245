"""The provenance section of a report."""

from __future__ import annotations

import pytest

from pathdex.experiments.report.repeat import _source_versions


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
