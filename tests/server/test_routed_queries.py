"""A router answers exactly as the unsharded model: the same items, scores bit for bit, and errors."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pathdex.server import routed_queries
from pathdex.server.errors import RequestError
from pathdex.server.schemas import QueryRequest
from tests.random_model import random_model
from tests.server.local_shards import LocalShards, outcome, run, unsharded

ITEMS = 700
FIRST = 100
VARIANTS: list[dict[str, Any]] = [
    {"neighbours": 8, "num_nodes": 8, "depth": 3},
    {"neighbours": 0, "num_nodes": 8, "depth": 3, "encoder": "pooled"},
    {"neighbours": 3, "num_nodes": 4, "depth": 2, "encoder": "attention", "neighbour_share": 0.7},
    {"neighbours": 8, "num_nodes": 20, "depth": 2, "shared_items": True, "history_length": 2},
]


@cache
def shards_of(variant: int, count: int, known_items: int = 0) -> LocalShards:
    model = random_model(ITEMS, seed=variant, **VARIANTS[variant])
    ids = model.items.ids(range(ITEMS))
    table = {
        "item": ids,
        "title": [f"Title {one}" for one in ids],
        "group": [f"g{place % 5}" for place in range(ITEMS)],
        "tags": [["old", "new"][place % 3 == 0 :] if place % 3 else None for place in range(ITEMS)],
        "price": [place / 7 for place in range(ITEMS)],
        "rare": ["a|b" if place == 4 else f"r{place}" for place in range(ITEMS)],
    }
    model.describe_items(pl.DataFrame(table))
    return LocalShards(model, count, known_items)


ids = st.integers(FIRST - 20, FIRST + ITEMS + 20)
lists = st.one_of(st.lists(ids, max_size=6), st.builds(lambda a, b: list(range(a, min(a + b, 900))), ids, ids))
conditions = st.one_of(
    st.none(),
    st.builds(lambda one: {"group": one}, st.sampled_from(["g1", "g9", ["g0", "g2"], 3.5])),
    st.builds(lambda low: {"price": {"min": low}}, st.sampled_from([0, 20.0, 99.5, 1000])),
    st.sampled_from([{"tags": "new"}, {"rare": "a"}, {"rare": "a|b"}, {"colour": "red"}, {}]),
)


@st.composite
def queries(draw: st.DrawFn) -> QueryRequest:
    n = draw(st.sampled_from([1, 3, 10, 150, 699, 5000]))
    beam, candidates = draw(
        st.one_of(
            st.tuples(st.none() | st.sampled_from([1, 2, 40, 10**6]), st.none()),
            st.tuples(st.none() | st.sampled_from([1, 7]), st.sampled_from([0, 1, 30, 900]).map(lambda more: n + more)),
            st.just((None, max(1, n - 1))),
        )
    )
    return QueryRequest(
        history=draw(st.lists(ids, max_size=9)),
        n=n,
        beam=beam,
        candidates=candidates,
        exclude_seen=draw(st.booleans()),
        allow=draw(st.none() | lists),
        deny=draw(st.just([]) | lists),
        where=draw(conditions),
    )


@settings(max_examples=60, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, len(VARIANTS) - 1),
    st.sampled_from([1, 2, 3, 5]),
    st.lists(queries(), min_size=1, max_size=4),
    st.sampled_from([0, 10, 100]),
)
def test_a_router_answers_as_the_whole_model(
    variant: int, count: int, batch: list[QueryRequest], known_items: int
) -> None:
    shards = shards_of(variant, count, known_items)
    histories = [query.history or [] for query in batch]
    expected = outcome(lambda: unsharded(shards, batch))
    for _ in range(2 if known_items else 1):  # The second time, the router remembers items.
        assert outcome(lambda: routed_queries.recommend(shards.asked(), shards.routed, batch, histories)) == expected


def test_shards_are_not_asked_for_histories_that_the_router_remembers() -> None:
    shards = LocalShards(shards_of(3, 2).model, 2, known_items=4)

    def asked_for(*history: int, **filters: Any) -> list[str]:
        asked = shards.asked()
        run(routed_queries.recommend(asked, shards.routed, [QueryRequest(list(history), **filters)], [list(history)]))
        routes: list[str] = asked.client.asked  # type: ignore[attr-defined]
        return [one for one in routes if one != "shard_describe"]

    assert asked_for(100, 101) == ["shard_resolve"] * 2 + ["shard_find"] * 2
    assert asked_for(101, 100, 101) == ["shard_find"] * 2
    assert asked_for(101, allow=[105]) == ["shard_resolve"] * 2 + ["shard_find"] * 2
    assert asked_for(100, 102) == ["shard_resolve"] * 2 + ["shard_find"] * 2
    assert asked_for(103, 104, 105, 106)[:1] == ["shard_resolve"]
    assert asked_for(100)[:1] == ["shard_resolve"]


def test_what_a_missing_shard_may_have_is_not_remembered_as_unknown() -> None:
    shards = LocalShards(shards_of(1, 3).model, 3, known_items=100)
    partial = shards.asked(frozenset({1}), partial=True)
    [found] = run(routed_queries.recommend(partial, shards.routed, [QueryRequest([100, 101])], [[100, 101]]))
    assert found.unknown == 1
    [found] = run(routed_queries.recommend(shards.asked(), shards.routed, [QueryRequest([100, 101])], [[100, 101]]))
    assert found.unknown == 0


def test_removed_items_stay_removed() -> None:
    model = random_model(40, neighbours=4)
    gone = np.array([3, 8, 9])
    model._items = model.items.with_changes(gone[:0], model.items.take(gone[:0]), gone, 40)
    paths = model.model_state.paths.copy()
    paths[gone] = -1
    from dataclasses import replace

    from pathdex.index.postings import Postings

    state = model.model_state
    postings = Postings.from_paths(paths, 4, 2)
    model._adopt(
        replace(state, paths=paths, postings=postings, log_shares=postings.log_shares(state.counts), neighbours=None)
    )
    shards = LocalShards(model, 3)
    for history in ([100], [103, 101], [103]):
        batch = [QueryRequest(history=list(history), n=40)]
        expected = outcome(lambda batch=batch: unsharded(shards, batch))  # type: ignore[misc]
        found = outcome(
            lambda batch=batch: routed_queries.recommend(  # type: ignore[misc]
                shards.asked(), shards.routed, batch, [batch[0].history or []]
            )
        )
        assert found == expected


def test_without_partial_a_missing_shard_is_an_error() -> None:
    shards = shards_of(0, 3)
    with pytest.raises(RequestError, match=r"shard 2 of 3 does not answer .*--partial") as caught:
        run(routed_queries.recommend(shards.asked(frozenset({1})), shards.routed, [QueryRequest([100])], [[100]]))
    assert caught.value.status == 503


def test_a_partial_answer_lacks_only_the_items_of_the_missing_shard() -> None:
    """It is the answer of the whole model without these items, and without the part of the history that is missing."""
    shards = shards_of(1, 3)
    asked = shards.asked(frozenset({1}), partial=True)
    own = [FIRST + code for code in range(1, ITEMS, 3)]
    query = QueryRequest(history=[100, 101, 103], n=20, beam=10**6)
    [found] = run(routed_queries.recommend(asked, shards.routed, [query], [[100, 101, 103]]))
    [expected] = unsharded(shards, [QueryRequest(history=[100, 103], n=20, beam=10**6, deny=own)])
    assert [(one.id, one.score) for one in found.items] == [(one.id, one.score) for one in expected.items]
    assert asked.missing == {1}


def test_unknown_histories_are_no_error_while_a_shard_is_missing() -> None:
    shards = shards_of(0, 3)
    asked = shards.asked(frozenset({1}), partial=True)
    [found] = run(routed_queries.recommend(asked, shards.routed, [QueryRequest([101])], [[101]]))
    assert len(found.items) == 10
    assert found.unknown == 1


def test_no_shard_at_all_is_an_error() -> None:
    shards = shards_of(0, 2)
    asked = shards.asked(frozenset({0, 1}), partial=True)
    with pytest.raises(RequestError, match="no shard answers"):
        run(routed_queries.recommend(asked, shards.routed, [QueryRequest([101])], [[101]]))
