"""What a shard says about a history; merged answers are compared in test_routed_queries.py."""

from __future__ import annotations

import numpy as np

from pathdex.recommenders.sharding import split_model
from pathdex.server import shard_service
from pathdex.server.shard_messages import ItemCall, ResolveCall, ResolveQuery, floats, ints
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
