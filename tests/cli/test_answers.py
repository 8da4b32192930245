"""Answers as tables and JSON."""

from __future__ import annotations

import polars as pl
from rich.console import Console

from pathdex.cli.answers import answer_json, answer_table, label
from pathdex.data.item_details import ItemDetails
from pathdex.recommenders.item_list import DescribedItem, ScoredItem

TABLE = pl.DataFrame({"item": [1], "title": ["One"], "genres": [["a", "b"]], "note": ["x" * 90]})


def text_of(items: list[ScoredItem], width: int) -> str:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(answer_table("Best", items))
    return captured.get()


def test_titles_and_details() -> None:
    details = ItemDetails.read(TABLE)
    items: list[ScoredItem] = [DescribedItem.make(1, 0.5, details), DescribedItem.make(2, 0.25, details)]
    assert answer_table("Best", items).rows == [
        ["1", "1", "One", "0.5000", "a|b", "x" * 90],
        ["2", "2", "", "0.2500", "", ""],
    ]
    assert answer_json(items)[1] == {"id": 2, "score": 0.25}
    assert answer_json(items)[0]["title"] == "One"
    assert (label(details, 1), label(details, 2), label(None, 1)) == ("1 (One)", "2", "1")
    narrow = text_of(items, 80)
    assert max(map(len, narrow.splitlines())) <= 80
    assert "genres" in narrow
    assert "note" not in narrow


def test_ids_alone() -> None:
    assert answer_table("Best", [ScoredItem("a", 1.0)]).head == ["rank", "item", "score"]
