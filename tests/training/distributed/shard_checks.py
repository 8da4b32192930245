"""Checks of what follows EM when each worker writes a shard; see `checks.py`."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pathdex.config import Config, RunOptions
from pathdex.data.item_details import ItemDetails
from pathdex.data.splits import split_users
from pathdex.errors import WorkerError
from pathdex.index.initialization import random_paths
from pathdex.index.postings import Postings
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.local_shards import LocalShards
from pathdex.recommenders.sharded_fit import fit_shard
from pathdex.recommenders.sharding import split_model
from pathdex.recommenders.trained_shard import save_shards
from pathdex.retrieval.filters import Filters
from pathdex.retrieval.retriever import log_path_weights
from pathdex.training.distributed.group import Group
from pathdex.training.distributed.used_paths import used_paths
from tests.tiny import TINY

VARIANTS: dict[int, dict[str, Any]] = {2: {"neighbours": 4, "path_weight": 0.3}, 3: {}}
"""By the number of workers: neighbours that stay, and all choices left open."""


def used(one: Group) -> None:
    """Sizes and weights are those of the postings of all items."""
    paths, counts = random_paths(50, 2, 4, 2, 0), np.random.default_rng(0).integers(0, 9, 50)
    found = used_paths(one, paths[one.rank :: one.size], counts)
    whole = Postings.from_paths(paths, 4, 2)
    assert found.codes.tolist() == whole.paths.tolist()
    assert found.sizes.tolist() == whole.sizes.tolist()
    assert found.first.tolist() == whole.items[whole.starts].tolist()
    sums = [int((counts[whole.items_on(path)] + 1).sum()) for path in whole.paths]
    assert found.weights.tolist() == sums
    shares = whole.log_shares(counts)
    np.testing.assert_allclose(
        np.log(found.weights), log_path_weights(whole, counts, shares, np.arange(len(whole))), rtol=1e-6
    )


def shards(one: Group) -> None:
    """Each worker's shard, the choices and the comparison are those of the whole model, bit by bit."""
    from tests.training.distributed.program import made_up

    split = split_users(made_up(users=240), valid_users=60, test_users=60)
    table = pl.DataFrame({"item": list(range(37)), "title": [f"Title {i}" for i in range(37)], "tags": ["a|b"] * 37})
    details = ItemDetails.read(table, item="item", title="title")
    folder = new_folder(one)
    config, options = Config.from_dict({**TINY, **VARIANTS[one.size]}), RunOptions(seed=1, threads=1)
    given: dict[str, Any] = {"callbacks": (), "validation": split.valid}
    model = DeepRetrieval(config, seed=1, threads=1).fit(split.train, items=details, group=one, **given)
    shard = fit_shard(config, options, split.train, one, details=details, **given)
    save_shards(one, shard, folder / "shards")
    if one.is_first:
        found = LocalShards.open(folder / "shards")
        shutil.rmtree(folder)
        same_model(model, found, split.test.history)


def same_model(model: DeepRetrieval, found: LocalShards, histories: Any) -> None:
    version = found.whole.facts.version
    assert version != "0" * 12
    for own, expected in zip(found.shards, split_model(model, len(found.shards), version), strict=True):
        mine, other = own.to_bundle(), expected.to_bundle()
        assert mine.settings == json.loads(json.dumps(other.settings))
        assert (mine.reading, mine.details) == (other.reading, other.details)
        for arrays, wanted in ((mine.arrays, other.arrays), (mine.weights, other.weights)):
            assert arrays.keys() == wanted.keys()
            for name, array in wanted.items():
                np.testing.assert_array_equal(arrays[name], array, err_msg=name)
    filters = Filters(exclude=histories)
    for one, other in zip(found.rank(histories, 5, filters), model.rank(histories, 5, filters), strict=True):
        np.testing.assert_array_equal(one, other)


def new_folder(one: Group) -> Path:
    """An empty folder, the same for all workers."""
    return Path(one.describe(one.first_only(tempfile.mkdtemp))[0])


def failed_shards(one: Group) -> None:
    """If one worker cannot write, none has written, and all stop."""
    from tests.training.distributed.program import made_up

    config, folder = Config.from_dict(TINY), new_folder(one)
    shard = fit_shard(config, RunOptions(threads=1), made_up(), one, callbacks=())
    if one.rank == one.size - 1:
        shard.facts = replace(shard.facts, version="bad")
    message = "cannot be saved" if one.rank == one.size - 1 else rf"worker {one.size - 1} cannot write to .*see what"
    with pytest.raises(Exception, match=message) as caught:
        save_shards(one, shard, folder / "shards")
    assert isinstance(caught.value, WorkerError) or one.rank == one.size - 1
    one.largest(0)
    if one.is_first:
        folder.rmdir()  # An error if anything is left in it.


SHARD_CHECKS = (used, shards, failed_shards)
