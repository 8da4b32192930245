"""Titles and details by code."""

from __future__ import annotations

import polars as pl
import pytest

from pathdex.data.item_details import ItemDetails
from pathdex.data.vocabulary import Vocabulary
from pathdex.explorer.catalogue import LONGEST_TEXT, MOST_VALUES, Catalogue
from pathdex.explorer.schemas import NamedItem

ITEMS = Vocabulary(["a", "b", "c"])


def test_items_without_details_have_ids_only() -> None:
    catalogue = Catalogue(ITEMS, None)
    assert catalogue.named([2, 0]) == [NamedItem("c"), NamedItem("a")]
    assert catalogue.described([1]) == [("b", None, None)]


def test_long_texts_and_lists_are_cut() -> None:
    frame = pl.DataFrame({"item": ["a", "b"], "title": ["t" * 1000, "short"], "tags": [["x"] * 100, []]})
    catalogue = Catalogue(ITEMS, ItemDetails.read(frame))
    [long, short, none] = catalogue.described([0, 1, 2])
    assert len(str(long[1])) == LONGEST_TEXT
    assert long[2] == {"tags": ["x"] * MOST_VALUES}
    assert short == ("b", "short", None)
    assert none == ("c", None, None)


@pytest.mark.parametrize("text", ["", "   ", "\u200b", "\n\t", "\u202e", None])
def test_a_title_without_a_visible_character_is_none(text: str | None) -> None:
    frame = pl.DataFrame({"item": ["a", "b"], "title": [text, "x"], "note": [text, "y"]})
    catalogue = Catalogue(ITEMS, ItemDetails.read(frame))
    assert catalogue.titles(["a", "b"]) == [None, "x"]


def test_a_blank_detail_is_left_out() -> None:
    frame = pl.DataFrame({"item": ["a", "b"], "title": ["x", "y"], "note": [" ", "z"]})
    catalogue = Catalogue(ITEMS, ItemDetails.read(frame))
    assert [details for _, _, details in catalogue.described([0, 1])] == [None, {"note": "z"}]
