"""What is computed once, and when it is computed again."""

from __future__ import annotations

import pytest

import pathdex
from pathdex.errors import QueryError
from pathdex.explorer import explorer as module
from pathdex.explorer.explorer import Explorer
from pathdex.recommenders.live_model import LiveModel
from tests.random_model import random_model
from tests.recommender_contract import TEXT_IDS, grouped_data


def test_only_a_model_with_an_index_can_be_explored() -> None:
    model = pathdex.Popularity().fit(grouped_data(TEXT_IDS))
    with pytest.raises(QueryError, match="a popularity model has no paths; use a deep-retrieval model"):
        Explorer(model, "v")


def test_a_value_is_computed_once_per_version(monkeypatch: pytest.MonkeyPatch) -> None:
    explorer, calls = Explorer(random_model(), "a"), list[int]()
    for _ in range(2):
        assert explorer.once("x", lambda: calls.append(1) or len(calls)) == 1  # type: ignore[func-returns-value]
    assert explorer.at("b").once("x", lambda: 7) == 1  # Too early to compute it again.
    monkeypatch.setattr(module, "RENEW_SECONDS", -1.0)
    monkeypatch.setattr(module, "RENEW_FACTOR", 0.0)
    assert explorer.at("b").once("x", lambda: 7) == 7
    assert explorer.at("b").once("x", lambda: 8) == 7


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
