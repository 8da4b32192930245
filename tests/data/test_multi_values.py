"""Cells that hold several values."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from pathdex.data.multi_values import check_lists, find_separator, split_cells
from pathdex.errors import DataError


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["Drama|War", "Drama", "War"], "|"),
        (["a; b", "b;c", "c", None, ""], ";"),
        (["['a', 'b']", "[]", None], "[]"),
        (['["a"]', "[1, 2]"], "[]"),
        (["Drama", "War"], None),
        (["One; or the other", "Nothing else"], None),
        (["[REC]", "[REC] 2"], None),
        (["[1, [2]]"], None),
        (["a,b", "b,a"], None),
        ([None, ""], None),
        ([], None),
    ],
)
def test_separators_are_found(cells: list[str | None], separator: str | None) -> None:
    assert find_separator(pl.Series("x", cells, dtype=pl.String)) == separator


def test_cells_become_lists() -> None:
    cells = pl.Series("x", [" a | b||", "", None, "c"])
    assert split_cells(cells, "|").to_list() == [["a", "b"], [], None, ["c"]]
    assert split_cells(pl.Series("x", ["['a', 1, 0.5]", None, ""]), "[]").to_list() == [["a", "1", "0.5"], None, None]
    with pytest.raises(DataError, match="column 'x' has cells that are not written as lists"):
        split_cells(pl.Series("x", ["a"]), "[]")


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"gernes": "|"}, "the table has no column 'gernes'; did you mean 'genres'"),
        ({"genres": ""}, "the separator of 'genres' must be text, or None"),
        ({"year": ","}, "column 'year' of the table is not text but Int64; leave it out"),
    ],
)
def test_wrong_declarations(lists: dict[str, Any], message: str) -> None:
    frame = pl.DataFrame({"genres": ["a"], "year": [3]})
    check_lists({"genres": None}, frame, "the table")
    with pytest.raises(DataError, match=message):
        check_lists(lists, frame, "the table")
