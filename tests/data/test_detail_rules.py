"""Stored details are checked before they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from pathdex.data.detail_rules import detail_problems
from pathdex.data.item_details import ItemDetails

DETAILS = ItemDetails.read(
    pl.DataFrame({"item": [1, 2], "title": ["é", None], "tags": [["a"], []], "price": [0.5, 1.0], "new": [True, False]})
)


def problems(changes: dict[str, Any] | None = None, **description: Any) -> list[str]:
    arrays = {name: array for name, array in {**DETAILS.arrays(), **(changes or {})}.items() if array is not None}
    return detail_problems({**DETAILS.description(), **description}, arrays)


def test_what_was_written_is_right() -> None:
    assert problems() == []
    assert detail_problems(None, {}) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"0.text": np.array([0xC3, 0x28], np.uint8)}, "0.text: is not UTF-8"),
        ({"0.offsets": np.array([0, 1, 2])}, "0.offsets: an id begins within a character"),
        ({"0.offsets": np.array([0, 9, 2])}, "0.offsets: must never descend"),
        ({"0.offsets": None}, "0.offsets: is missing"),
        ({"0.missing": np.array([5])}, "0.missing: holds 5, must hold no value above 1"),
        ({"1.lists": np.array([0, 1])}, "1.lists: has shape (2,), must have shape (3)"),
        ({"1.lists": np.array([0, 2, 1])}, "1.lists: must never descend"),
        ({"2.values": np.array([np.nan, 1.0])}, "2.values: holds NaN or infinity, must be finite"),
        ({"2.values": np.array([1, 2])}, "2.values: has dtype int64, must have float64"),
        ({"3.values": np.array([0, 2], np.uint8)}, "3.values: holds 2, must hold no value above 1"),
        ({"4.values": np.array([0])}, "4.values: belongs to no column"),
        ({"items.ids": np.array([1, 1])}, "items.ids: one occurs twice, must be distinct"),
        ({"items.removed": np.array([0])}, "items.removed: the details of items have no removed rows"),
    ],
)
def test_damaged_arrays(changes: dict[str, Any], message: str) -> None:
    assert problems(changes) == [message]


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ({"title": "no"}, "title: must be one of the columns"),
        ({"columns": []}, "columns: must be a list of columns"),
        ({"columns": [{"name": "a", "kind": "object", "many": False}]}, "columns[0]: must have a name, a kind of"),
        ({"other": 1}, "must be an object with `title` and `columns`"),
    ],
)
def test_wrong_descriptions(description: dict[str, Any], message: str) -> None:
    [found] = problems(**description)
    assert found.startswith(message)


def test_two_columns_of_one_name_and_arrays_without_a_description() -> None:
    twice = [*DETAILS.description()["columns"][:1]] * 2
    assert problems(columns=twice) == ["columns: two have the same name"]
    assert detail_problems(None, {"0.text": np.empty(0)}) == ["0.text: needs `details` in the manifest"]
