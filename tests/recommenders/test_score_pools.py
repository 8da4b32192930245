"""Pools give the figures of the model, whole or in shards."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.data import Queries, Ragged, Vocabulary
from pathdex.recommenders.score_pools import BUDGETS, collect_pools
from pathdex.retrieval.filters import Filters
from pathdex.retrieval.score_weights import ScoreWeights
from pathdex.training.held_out import SIZES, f_measures
from tests.random_model import random_model


def queries(num_items: int, count: int = 40) -> Queries:
    random = np.random.default_rng(0)
    rows = [random.permutation(num_items)[:12] for _ in range(count)]
    histories, truths = [row[:4] for row in rows], [row[4:] for row in rows]
    return Queries(Vocabulary(np.arange(count)), Ragged.from_rows(histories), Ragged.from_rows(truths))


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("neighbours", [0, 20])
def test_a_pool_gives_the_same_figures_as_the_model(share: float, neighbours: int) -> None:
    weights = ScoreWeights(path=0.3, neighbour=2.0, smoothing=0.01, share=share, recency=0.5)
    model = random_model(800, num_nodes=12, history_length=8, neighbours=neighbours, **weights.to_config())
    asked, beam = queries(800), len(model.postings)
    pools = collect_pools(model.retriever, asked, np.zeros(800, np.float32), beam=beam, recency=0.5)
    filters = Filters(exclude=asked.history)
    for column, size in enumerate(SIZES):
        answers = [model.rank(asked.history, size, filters, beam=beam, candidates=one * size) for one in BUDGETS]
        expected = np.mean([f_measures(ranking.items, asked, (size,))[:, 0] for ranking in answers], axis=0)
        found = pools.f_measures(weights)[:, column]
        # A path on the edge of a share may be admitted or not.
        assert np.mean(np.isclose(found, expected)) >= 0.9
