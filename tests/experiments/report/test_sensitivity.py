"""Part 3 of a report."""

from __future__ import annotations

from pathdex.experiments.report.sensitivity import NAMES, sensitivity_parts
from pathdex.experiments.reproduce import Report
from pathdex.tables import TextTable


def test_one_table_per_hyper_parameter_with_the_base_value_in_bold(report: Report) -> None:
    tables = [part for part in sensitivity_parts(report.results) if isinstance(part, TextTable)]
    assert [table.title for table in tables] == [f"{title}, in %" for _, title in NAMES.values()]
    assert all(len(table.bold) == 1 for table in tables)
    for table in tables:
        assert all(len(row) == len(table.head) for row in table.rows)


def test_there_is_no_section_without_a_study(report: Report) -> None:
    assert sensitivity_parts({**report.results, "sensitivity": None}) == []
