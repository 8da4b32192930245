"""The parts of a shard that follow from the paths of own items and from what all workers know."""

from __future__ import annotations

import numpy as np

from pathdex.recommenders.sharding import split_model
from pathdex.recommenders.trained_shard import own_postings, path_weights
from pathdex.training.distributed.used_paths import UsedPaths
from tests.random_model import random_model
from tests.training.distributed.conftest import Workers, workers  # noqa: F401


def test_postings_and_weights_are_those_of_the_split_model() -> None:
    model = random_model(50)
    whole, counts = model.postings, model.model_state.counts
    totals = np.array([int((counts[whole.items_on(path)] + 1).sum()) for path in whole.paths])
    used = UsedPaths(whole.paths, whole.sizes, totals, whole.items[whole.starts].astype(np.int64))
    for rank, shard in enumerate(split_model(model, 3, "0123456789ab")):
        own, shares = own_postings(used, model.paths[rank::3], counts[rank::3], model.num_nodes, whole.depth)
        np.testing.assert_array_equal(own.offsets, shard.postings.offsets)
        np.testing.assert_array_equal(own.items, shard.postings.items)
        np.testing.assert_array_equal(shares, shard.model_state.log_shares)
        np.testing.assert_array_equal(path_weights(used, counts), shard.path_weights)


def test_shards_of_workers_are_those_of_the_whole_model(workers: Workers) -> None:  # noqa: F811
    assert not workers.problems("shards")


def test_a_worker_that_cannot_write_leaves_no_shards(workers: Workers) -> None:  # noqa: F811
    assert not workers.problems("failed_shards")
