"""Labels: class-based TF-IDF on catalogues whose answer is obvious."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pathdex.data.item_details import ItemDetails
from pathdex.data.vocabulary import Vocabulary
from pathdex.explorer.catalogue import Catalogue
from pathdex.explorer.labels import LabelMaker, background, normalize


def maker(frame: pl.DataFrame | None, size: int = 8) -> LabelMaker:
    details = None if frame is None else ItemDetails.read(frame)
    return LabelMaker(Catalogue(Vocabulary(np.arange(size)), details), np.arange(size))


SHOP = pl.DataFrame(
    {
        "item": range(8),
        "title": ["The red apple", "Red Äpfel pie", "red plum", "The green plum"] + ["The iron nail"] * 4,
        "kind": ["food|gift", "food", "food", "food"] + ["tool"] * 4,
        "new": [True, True, True, True, False, False, False, False],
        "price": [1.0, 2, 3, 4, 5, 6, 7, 8],
    }
)


def test_frequent_here_and_rare_elsewhere_wins() -> None:
    label = maker(SHOP).label(np.array([0, 1, 2]))
    assert label is not None
    assert label.terms[0].term in ("red", "Red", "food", "new")
    assert {one.column for one in label.terms} <= {"title", "kind", "new"}
    assert label.sample == 3
    assert [one.score for one in label.terms] == sorted((one.score for one in label.terms), reverse=True)


def test_what_all_have_is_no_label() -> None:
    assert maker(SHOP).label(np.arange(8)) is None


def test_several_values_in_a_cell_are_read_apart() -> None:
    shared = maker(SHOP).shared_values(np.array([0, 1, 2, 3]))
    assert ("kind", "food", 4, 4, 0.5) in shared
    assert all(value != "food|gift" for _, value, *_ in shared)


def test_ids_alone_give_no_label() -> None:
    silent = maker(None)
    assert silent.is_silent
    assert silent.label(np.array([0, 1])) is None


def test_items_without_a_row_give_no_label() -> None:
    assert maker(SHOP.filter(pl.col("item") < 4)).label(np.array([6, 7])) is None


def test_a_single_item_may_be_labelled() -> None:
    label = maker(SHOP).label(np.array([1]))
    assert label is not None
    assert "pie" in {one.term for one in label.terms} | {label.text.split(" · ")[0]}


def test_the_same_catalogue_has_the_same_background() -> None:
    gone = np.array([3])
    assert np.array_equal(background(10, gone), background(10, gone))
    assert background(10, gone).tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(("text", "plain"), [("Épée", "epee"), ("STRASSE", "strasse"), ("ǅ", "dz")])
def test_normal_text_has_no_case_and_no_diacritics(text: str, plain: str) -> None:
    assert normalize(text) == plain
