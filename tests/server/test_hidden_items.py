"""Removed items are hidden until the model has lost them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pathdex.data.item_changes import AddItem, RemoveItem
from pathdex.data.vocabulary import Vocabulary
from pathdex.server import hidden_items
from pathdex.server.hidden_items import HiddenItems


def served(version: str, *ids: Any) -> Any:
    items = Vocabulary(list(ids)) if isinstance(ids[0], str) else Vocabulary(np.array(ids))
    return SimpleNamespace(version=version, recommender=SimpleNamespace(items=items))


def test_a_removed_item_is_hidden_while_the_model_has_it() -> None:
    hidden = HiddenItems()
    assert list(hidden.in_model(served("1", "a", "b"))) == []
    hidden.apply([RemoveItem("a"), RemoveItem("never there")])
    assert list(hidden.in_model(served("1", "a", "b"))) == ["a"]
    assert list(hidden.in_model(served("2", "a", "b"))) == ["a"]
    assert list(hidden.in_model(served("3", "b"))) == []
    assert list(hidden.in_model(served("4", "a", "b"))) == []


def test_the_ids_are_those_of_the_model() -> None:
    hidden = HiddenItems()
    hidden.apply([RemoveItem("12")])
    assert list(hidden.in_model(served("1", 11, 12))) == [12]


def test_an_item_that_comes_after_its_removal_is_hidden_too() -> None:
    """It was added and removed before it was published."""
    hidden = HiddenItems()
    hidden.apply([RemoveItem("a")])
    assert list(hidden.in_model(served("1", "b"))) == []
    assert list(hidden.in_model(served("2", "a", "b"))) == ["a"]


def test_an_item_that_is_added_again_is_shown() -> None:
    hidden = HiddenItems()
    hidden.apply([RemoveItem("a"), RemoveItem("b")])
    assert list(hidden.in_model(served("1", "a", "b"))) == ["a", "b"]
    hidden.apply([AddItem("a")])
    assert list(hidden.in_model(served("1", "a", "b"))) == ["b"]


def test_items_are_hidden_for_an_hour_at_most() -> None:
    now = 0.0
    hidden = HiddenItems(lambda: now)
    hidden.apply([RemoveItem("a")])
    now = hidden_items.SECONDS - 1
    assert list(hidden.in_model(served("1", "a", "b"))) == ["a"]
    now = hidden_items.SECONDS
    assert list(hidden.in_model(served("2", "a", "b"))) == []


def test_the_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden_items, "MOST", 2)
    hidden = HiddenItems()
    hidden.apply([RemoveItem("a"), RemoveItem("b"), RemoveItem("c")])
    assert list(hidden.in_model(served("1", "a", "b", "c"))) == ["b", "c"]
