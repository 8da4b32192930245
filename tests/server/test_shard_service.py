"""What a shard says about a history; merged answers are compared in test_routed_queries.py."""

from __future__ import annotations

import numpy as np
import pytest
from numba import typeof

from pathdex.recommenders import shard as recommender
from pathdex.recommenders.sharding import split_model
from pathdex.retrieval.part_search import PartFound, PartQuery, find_part
from pathdex.retrieval.retriever import Retriever
from pathdex.retrieval.score_weights import ScoreWeights
from pathdex.server import shard_service
from pathdex.server.shard_messages import FindCall, FindQuery, ItemCall, ResolveCall, ResolveQuery, floats, ints
from tests.random_model import random_model

VERSION = "0123456789ab"


def test_a_shard_sends_only_what_it_holds_of_a_history() -> None:
    shard = list(split_model(random_model(20, neighbours=3), 3, VERSION))[1]
    call = ResolveCall(VERSION, [ResolveQuery([100, 101, 104, 101, 999], allow=[101, 102, 107])])
    [found] = shard_service.resolve(shard, call).queries
    assert ints(found.places).tolist() == [1, 2, 3]
    assert ints(found.codes).tolist() == [0, 1, 0]
    assert ints(found.distinct).tolist() == [0, 1]
    rows = floats(found.rows).reshape(2, -1)
    assert np.array_equal(rows, shard.retriever.table[:2, : shard.config.embedding_dim])
    assert ints(found.near).tolist() == shard.near.items[: shard.near.offsets[2]].tolist()
    assert found.eligible == 2
    assert found.problem is None


def test_what_is_wrong_with_conditions_is_part_of_the_answer() -> None:
    shard = next(split_model(random_model(20), 2, VERSION))
    [found] = shard_service.resolve(shard, ResolveCall(VERSION, [ResolveQuery([], where={"a": 1})])).queries
    assert found.problem is not None
    assert "needs a catalogue table" in found.problem.message


def test_an_item_that_the_shard_does_not_hold() -> None:
    shard = next(split_model(random_model(20), 2, VERSION))
    assert shard_service.item(shard, ItemCall(VERSION, 101)).code == -1
    assert shard_service.item(shard, ItemCall(VERSION, "102")).code == 2


def test_the_first_call_of_a_warm_shard_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes longer than a router waits, and compiled code has a version for each type of its arrays."""
    types: list[list[str]] = []

    def record(retriever: Retriever, weights: ScoreWeights, query: PartQuery) -> PartFound:
        types.append([str(typeof(one)) for one in query if isinstance(one, np.ndarray)])
        return find_part(retriever, weights, query)

    monkeypatch.setattr(recommender, "find_part", record)
    monkeypatch.setattr(shard_service, "find_part", record)
    shard = next(split_model(random_model(20, neighbours=3), 2, VERSION))
    shard.warmup()
    warmed, types = types, []
    one, number = np.zeros(1, np.int32).tobytes(), np.ones(1, np.float32).tobytes()
    user = np.ones(shard.config.embedding_dim, np.float32).tobytes()
    query = FindQuery(user, one, number, 1, similar=one, similarity=number)
    masked = FindQuery(user, one, number, 1, similar=one, similarity=number, allow=[100])
    listed = FindQuery(user, one, number, 1, similar=one, similarity=number, allow=[100], listed=True)
    assert len(shard_service.find(shard, FindCall(VERSION, [query, masked, listed])).queries) == 3
    assert len(types) == 3
    assert all(found in warmed for found in types)
