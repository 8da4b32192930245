"""A folder of shards answers as the whole model, and says what it cannot do."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import pathdex
from pathdex.data import Ragged
from pathdex.errors import BundleError, ConfigError
from pathdex.recommenders.local_shards import LocalShards
from pathdex.recommenders.sharding import write_shards
from tests.random_model import random_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random_model(50, neighbours=3).save(tmp_path / "model")
    write_shards(tmp_path / "model", 3, tmp_path / "shards")
    return tmp_path / "shards"


def test_ids_and_answers_are_those_of_the_whole_model(folder: Path) -> None:
    model, shards = pathdex.load(folder.parent / "model"), LocalShards.open(folder)
    assert shards.items.ids(range(50)) == model.items.ids(range(50))
    assert shards.get_params() == model.get_params()
    for history in ([103, 120], [], [149]):
        assert shards.recommend(history, 7, beam=2) == model.recommend(history, 7, beam=2)
        assert shards.recommend(history, 7, deny=[104]) == model.recommend(history, 7, deny=[104])
    assert repr(shards.whole.health) == repr(model.health())


def test_shards_that_are_missing_or_of_another_model_are_an_error(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"model is no complete folder of shards .*pass what `pathdex shard` or"):
        LocalShards.open(tmp_path / "model")
    random_model(50, seed=1).save(tmp_path / "other")
    other = write_shards(tmp_path / "other", 3, tmp_path / "foreign")
    shutil.rmtree(folder / "shard-2")
    shutil.copytree(other.folders[1], folder / "shard-2")
    with pytest.raises(BundleError, match=r"holds shard 2 of 3 of model \w+, not shard 2 of 3 of model .*again"):
        LocalShards.open(folder)
    shutil.rmtree(folder / "shard-2")
    shutil.copytree(tmp_path / "model", folder / "shard-2")
    with pytest.raises(BundleError, match="holds a deep-retrieval model, not shard 2 of 3"):
        LocalShards.open(folder)
    shutil.rmtree(folder / "shard-2")
    with pytest.raises(BundleError):
        LocalShards.open(folder)


def test_what_shards_cannot_do_is_an_error(folder: Path) -> None:
    shards = LocalShards.open(folder)
    with pytest.raises(ConfigError, match="know only exclude_seen and deny; serve them with `pathdex serve --shards`"):
        shards.recommend([103], 2, allow=[105])
    for call in (lambda: shards.fit(None), shards.get_state, lambda: shards.set_state(None)):
        with pytest.raises(ConfigError, match=r"shards cannot .* together; train and save a whole model"):
            call()
    assert len(shards.rank(Ragged.from_rows([[1]]), 3).items) == 1
    assert np.isfinite(shards.rank(Ragged.from_rows([[1]]), 3).scores).all()
