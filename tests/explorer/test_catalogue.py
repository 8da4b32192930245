"""Titles and details by code."""

from __future__ import annotations

import polars as pl

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
