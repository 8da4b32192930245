"""Columns of item details: what is written is what was read."""

from __future__ import annotations

from datetime import date
from typing import Any

import polars as pl
import pytest

from pathdex.data.detail_columns import make_detail_column


def values_of(series: pl.Series, *, text_file: bool = False) -> tuple[str, list[Any]]:
    """The description and the values of a column, which a frame must agree with."""
    column = make_detail_column(series, text_file=text_file)
    assert column is not None
    values = [column.value(row) for row in range(len(series))]
    assert column.series().to_list() == values
    assert column.series().name == series.name
    return column.description, values


@pytest.mark.parametrize(
    ("given", "description"),
    [
        (["a", "", "ünïcode 🎬", None], "text"),
        ([1, None, -(2**62)], "integer"),
        ([0.5, None, 2.0], "number"),
        ([True, None, False], "boolean"),
        ([["x", "y"], [], None, ["z"]], "list of text"),
        ([[1, 2], [3]], "list of integer"),
        ([[True], None, []], "list of boolean"),
        ([None, None], "text"),
    ],
)
def test_values_come_back(given: list[Any], description: str) -> None:
    assert values_of(pl.Series("name", given)) == (description, given)


def test_what_json_cannot_hold_is_missing_or_text() -> None:
    assert values_of(pl.Series("x", [1.0, float("nan"), float("inf")])) == ("number", [1.0, None, None])
    assert values_of(pl.Series("x", [date(1977, 5, 25), None])) == ("text", ["1977-05-25", None])
    assert values_of(pl.Series("x", [[1, None, 2], [None]])) == ("list of integer", [[1, 2], []])
    assert values_of(pl.Series("x", [2**64 - 1], dtype=pl.UInt64)) == ("text", [str(2**64 - 1)])
    assert make_detail_column(pl.Series("x", [{"a": 1}]), text_file=False) is None


def test_values_of_text_files_are_typed() -> None:
    assert values_of(pl.Series("x", ["1977", "1999"]), text_file=True) == ("integer", [1977, 1999])
    assert values_of(pl.Series("x", ["007", "1999"]), text_file=True) == ("text", ["007", "1999"])
    assert values_of(pl.Series("x", ["true", None, "False"]), text_file=True) == ("boolean", [True, None, False])


def test_a_slice_of_a_column() -> None:
    assert values_of(pl.Series("x", ["no", "a", "bb", None])[1:]) == ("text", ["a", "bb", None])
