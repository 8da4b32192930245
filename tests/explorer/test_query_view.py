"""The course of a query ends in the answer of `recommend`, exactly."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from pathdex.errors import QueryError
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.query_schemas import ExploreQuery
from pathdex.explorer.query_view import query_view
from tests.random_model import random_model
from tests.recommender_contract import TEXT_IDS

QUERIES: list[dict[str, Any]] = [
    {},
    {"beam": 1},
    {"beam": 3, "exclude_seen": False},
    {"candidates": 12},
    {"n": 20, "beam": 2},
    {"deny": TEXT_IDS[4:9]},
    {"allow": TEXT_IDS[8:20], "n": 5},
    {"where": {"year": {"min": 2000}}},
    {"allow": [], "n": 3},
]


@pytest.mark.parametrize("options", QUERIES, ids=str)
@pytest.mark.parametrize("history", [[], TEXT_IDS[:2], TEXT_IDS[10:20]], ids=len)
def test_items_and_scores_are_those_of_recommend(
    explorer: Explorer, history: list[str], options: dict[str, Any]
) -> None:
    found = query_view(explorer, ExploreQuery(history, **options))
    n = options.pop("n", 10) if "n" in options else 10
    expected = explorer.model.recommend(history, n, **{k: v for k, v in options.items() if k != "n"})
    options["n"] = n
    shown = [one for one in found.items if one.recommended]
    assert [(one.id, one.score) for one in shown] == list(expected)
    for one in found.items:
        assert sum(msgspec.structs.astuple(one.parts)) == pytest.approx(one.score, abs=1e-4)
    assert found.num_candidates >= len(shown)


@pytest.mark.parametrize("neighbours", [0, 5])
def test_large_random_models_agree_too(neighbours: int) -> None:
    model = random_model(500, num_nodes=9, depth=3, neighbours=neighbours)
    explorer = Explorer(model, "v")
    random = np.random.default_rng(0)
    for _ in range(5):
        history = (100 + random.integers(0, 500, 4)).tolist()
        for options in ({"beam": 4}, {"candidates": 30}, {"beam": 1, "n": 60}):
            found = query_view(explorer, ExploreQuery(history, **options))
            n = options.get("n", 10)
            expected = model.recommend(history, n, **{k: v for k, v in options.items() if k != "n"})
            assert [(one.id, one.score) for one in found.items if one.recommended] == list(expected)
            by_neighbours = [one for one in found.items if one.source == "neighbours"]
            assert neighbours or not by_neighbours
            assert found.from_paths + found.from_neighbours == found.num_candidates


def test_layers_keep_the_most_probable(explorer: Explorer) -> None:
    found = query_view(explorer, ExploreQuery(TEXT_IDS[:2], beam=3, n=1))
    assert [layer.layer for layer in found.layers] == [1, 2]
    for layer in found.layers:
        kept = [one for one in layer.prefixes if one.kept]
        pruned = [one for one in layer.prefixes if not one.kept]
        assert len(kept) == layer.kept == 3
        assert len(kept) + len(pruned) == layer.compared
        assert min(one.probability for one in kept) == pytest.approx(layer.threshold)
        assert all(one.probability <= (layer.threshold or 0) + 1e-6 for one in pruned)
        assert layer.mass == pytest.approx(sum(one.probability for one in kept))
    first, second = found.layers
    assert first.compared_mass == pytest.approx(1, abs=1e-4)
    assert second.compared_mass == pytest.approx(first.mass, abs=1e-4)
    parents = {tuple(one.prefix) for one in first.prefixes if one.kept}
    assert {tuple(one.prefix[:1]) for one in second.prefixes} == parents


def test_the_beam_grows_until_there_are_enough(explorer: Explorer) -> None:
    found = query_view(explorer, ExploreQuery([], beam=1, n=25))
    assert (found.requested_beam, found.beam > 1) == (1, True)
    assert found.num_candidates >= 25
    assert found.beam == min(found.beam, len(explorer.model.postings))


def test_few_eligible_items_are_scored_one_by_one(explorer: Explorer) -> None:
    found = query_view(explorer, ExploreQuery([], allow=TEXT_IDS[:3]))
    assert (found.mode, found.layers, found.num_candidates) == ("listed", [], 3)
    assert {one.source for one in found.items} == {"listed"}


def test_unknown_items_are_counted(explorer: Explorer) -> None:
    found = query_view(explorer, ExploreQuery([TEXT_IDS[0], "unknown"]))
    assert (found.unknown, [one.id for one in found.history]) == (1, [TEXT_IDS[0]])
    with pytest.raises(QueryError, match="has no item of the catalogue"):
        query_view(explorer, ExploreQuery(["unknown"]))


def test_hidden_items_are_left_out(explorer: Explorer) -> None:
    best = query_view(explorer, ExploreQuery([])).items[0].id
    assert best not in [one.id for one in query_view(explorer, ExploreQuery([]), [best]).items]
