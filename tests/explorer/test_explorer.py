"""What is computed once, and when it is computed again."""

from __future__ import annotations

import threading

import pytest

import pathdex
from pathdex.errors import QueryError
from pathdex.explorer.explorer import Explorer
from pathdex.recommenders.live_model import LiveModel
from tests.random_model import random_model
from tests.recommender_contract import TEXT_IDS, grouped_data


def test_only_a_model_with_an_index_can_be_explored() -> None:
    model = pathdex.Popularity().fit(grouped_data(TEXT_IDS))
    with pytest.raises(QueryError, match="a popularity model has no paths; use a deep-retrieval model"):
        Explorer(model, "v")


def test_a_value_is_computed_once() -> None:
    explorer, calls = Explorer(random_model(), "a"), list[int]()
    for _ in range(2):
        assert explorer.once("x", lambda: calls.append(1) or len(calls)) == 1  # type: ignore[func-returns-value]


def test_a_value_that_is_prepared_is_waited_for_a_moment() -> None:
    explorer, go_on = Explorer(random_model(), "a"), threading.Event()
    assert explorer.waits_for("b", 60) is None  # Nothing is being prepared, so whoever needs it computes it.
    steps = {"first": lambda _: go_on.wait(60), "second": lambda one: one.once("b", lambda: 7)}
    thread = threading.Thread(target=explorer.prepare, args=(steps,))
    thread.start()
    while explorer.doing is None:
        pass
    assert explorer.doing.name == "first"
    waited = explorer.waits_for("b", 0.01)
    assert waited is not None
    assert waited > 0
    go_on.set()
    assert explorer.waits_for("b", 60) is None
    thread.join()
    assert explorer.doing is None
    assert explorer.once("b", lambda: 8) == 7


def test_what_cannot_be_prepared_is_left_to_the_requests() -> None:
    explorer = Explorer(random_model(), "a")
    with pytest.raises(ZeroDivisionError):
        explorer.prepare({"first": lambda _: 1 // 0})
    assert explorer.doing is None
    assert explorer.waits_for("x", 60) is None


def test_labels_are_remembered(explorer: Explorer) -> None:
    path = explorer.nodes_of(int(explorer.facts.paths[0]))
    assert explorer.label(path) == explorer.label(path)
    assert tuple(path) in explorer._labels


@pytest.mark.parametrize("text", ["1-2-3", "9-9", "a-b", "", "1--2", "-1-2", "1", "1-" + "9" * 30, "١-٢"])
def test_a_path_is_checked(explorer: Explorer, text: str) -> None:
    with pytest.raises(QueryError, match="must have 2 nodes between 0 and 3, joined by hyphens; write it as 1-2"):
        explorer.parse_path(text)


def test_a_path_may_have_commas(explorer: Explorer) -> None:
    assert explorer.parse_path("1,2") == explorer.parse_path("1-2") == (1, 2)
    assert explorer.parse_path("", whole=False) == ()


def test_popularity_leaves_removed_items_out(explorer: Explorer) -> None:
    order = explorer.by_popularity
    assert sorted(order.tolist()) == list(range(len(TEXT_IDS)))
    counts = explorer.counts[order]
    assert (counts[:-1] >= counts[1:]).all()
    assert explorer.popularity_rank[order[0]] == 1


def test_a_live_model_can_be_explored() -> None:
    explorer = Explorer(LiveModel(random_model()), "v")
    assert explorer.is_live
    assert len(explorer.facts) == len(explorer.model.postings)
