"""Answers as lists, frames and HTML."""

from __future__ import annotations

import copy
import pickle
import sys

import polars as pl
import pytest

from pathdex.data.item_details import ItemDetails
from pathdex.errors import ConfigError
from pathdex.recommenders.item_list import DescribedItem, GivenDetails, ItemList, ItemLists, ScoredItem, html_table

DETAILS = ItemDetails.read(pl.DataFrame({"item": [1, 2], "title": ["<One>", "Two"], "score": ["low", None]}))
ANSWER = ItemList([DescribedItem.make(2, 0.5, DETAILS), DescribedItem.make(1, 0.25, DETAILS)])


def test_an_item_is_a_pair_with_a_title() -> None:
    item = ANSWER[0]
    assert item == (2, 0.5) == ScoredItem(2, 0.5)
    assert (item.id, item.score, item.title, item.details) == (2, 0.5, "Two", {})
    assert repr(item) == "ScoredItem(id=2, score=0.5, title='Two')"
    assert copy.copy(item).title == "Two"
    assert pickle.loads(pickle.dumps(item)).title == "Two"
    assert (ScoredItem(2, 0.5).title, ScoredItem(2, 0.5).details) == (None, {})


def test_frames() -> None:
    assert ANSWER.to_frame().to_dict(as_series=False) == {
        "rank": [1, 2],
        "item": [2, 1],
        "score": [0.5, 0.25],
        "title": ["Two", "<One>"],
        "item_score": [None, "low"],
    }
    both = ItemLists([ANSWER, ItemList()])
    assert both.to_frame()["query"].to_list() == [0, 0]
    assert ItemList().to_frame().columns == ["rank", "item", "score"]
    with pytest.raises(ConfigError, match="library='spark': must be 'polars' or 'pandas'"):
        ANSWER.to_frame("spark")


def test_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        import pandas  # noqa: F401
    except ImportError:
        pass
    else:
        assert ANSWER.to_frame("pandas")["title"].tolist() == ["Two", "<One>"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match="library='pandas': is not installed; install it with: pip install pandas"):
        ANSWER.to_frame("pandas")


def test_html_is_escaped() -> None:
    text = ANSWER._repr_html_()
    assert "<td>&lt;One&gt;</td>" in text
    assert "<th>title</th>" in text
    assert "<td>0.5000</td>" in text
    assert ItemLists([ANSWER])._repr_html_().count("<tr>") == 3
    assert "<td>a, b</td>" in html_table(pl.DataFrame({"x": [["a", "b"]]}))


def test_given_details() -> None:
    given = GivenDetails({1: "One"}, {1: {"year": 3}})
    item = DescribedItem.make(1, 2.0, given)
    assert (item.title, item.details) == ("One", {"year": 3})
    assert (given.title(9), given.details(9)) == (None, {})
