"""Shards, merged without a router, give the answers and the pools of the whole model bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pathdex.data import Ragged
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.score_pools import LIMIT, collect_pools, join_rows, pool_row
from pathdex.recommenders.shard import DeepRetrievalShard
from pathdex.recommenders.shard_search import ShardSearch, ShardWork
from pathdex.recommenders.sharding import split_model
from pathdex.retrieval.filters import Filters
from tests.random_model import random_model
from tests.recommenders.test_score_pools import queries

ITEMS = 900
VARIANTS: list[dict[str, Any]] = [
    {"neighbours": 9, "num_nodes": 12, "history_length": 3},
    {"neighbours": 0, "num_nodes": 9, "depth": 2, "encoder": "pooled"},
    {"neighbours": 4, "num_nodes": 6, "depth": 3, "encoder": "attention", "neighbour_share": 0.7},
]


class Together:
    """Shards in a list."""

    def __init__(self, model: DeepRetrieval, count: int) -> None:
        self.shards = list(split_model(model, count, "0123456789ab"))

    def ask(self, work: ShardWork) -> list[tuple[NDArray[Any], ...]]:
        return [work(shard) for shard in self.shards]

    @property
    def first(self) -> DeepRetrievalShard:
        return self.shards[0]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_rankings_and_their_candidates_are_those_of_the_whole_model(variant: dict[str, Any], count: int) -> None:
    model = random_model(ITEMS, **variant)
    shards = Together(model, count)
    search = ShardSearch.of(shards.first, shards)
    rows = [*queries(ITEMS, 90).history, [], [5, 5, 7]]
    histories = Ragged.from_rows(rows)
    given: list[dict[str, Any]] = [{}, {"beam": 1}, {"candidates": 30}, {"beam": 2, "candidates": 400}]
    for options in given:
        for exclude in (None, histories):
            expected = model.rank(histories, 20, Filters(exclude=exclude), **options)
            found = search.rank(histories, 20, exclude, **options)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_pools_are_those_of_the_whole_model(variant: dict[str, Any], count: int) -> None:
    model = random_model(ITEMS, **variant)
    shards, asked = Together(model, count), queries(ITEMS, 70)
    search, logs = ShardSearch.of(shards.first, shards), np.log(model.model_state.counts + 1.0).astype(np.float32)
    for beam in (1, model.model_state.beam_for(LIMIT)):
        expected = collect_pools(model.retriever, asked, logs, beam=beam, recency=0.5)
        parts = search.pool_parts(asked.history, 0.5, beam)
        found = join_rows([pool_row(one, truth, logs) for one, truth in zip(parts, asked.truth, strict=True)], asked)
        for name, values in vars(expected).items():
            np.testing.assert_array_equal(getattr(found, name), values, err_msg=name)
