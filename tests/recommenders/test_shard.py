"""A shard is an ordinary bundle: it is checked when it is opened, and recommends from its own items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pathdex
from pathdex.errors import BundleError, ConfigError
from pathdex.recommenders.shard import DeepRetrievalShard, ShardFacts
from pathdex.recommenders.sharding import split_model, write_shards
from pathdex.recommenders.verification import verify_model
from tests.bundle_edits import change_manifest, read_json
from tests.random_model import random_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random_model(20, neighbours=3).save(tmp_path / "model")
    return write_shards(tmp_path / "model", 3, tmp_path / "shards").folders[1]


def test_it_recommends_from_its_own_items(folder: Path) -> None:
    shard = pathdex.load(folder)
    found = shard.recommend([101], 20, exclude_seen=False)
    assert sorted(one.id for one in found) == list(range(101, 120, 3))
    assert verify_model(folder, lambda _: None) == []
    assert isinstance(shard.warmup(), DeepRetrievalShard)


def test_codes_of_the_whole_model() -> None:
    facts = list(split_model(random_model(20), 3, "0123456789ab"))[1].facts
    assert facts.own(range(8)).tolist() == [0, 1, 2]  # type: ignore[arg-type]
    assert facts.whole([0, 1, 2]).tolist() == [1, 4, 7]  # type: ignore[arg-type]
    assert facts.num_own() == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"index": 3}, "must be below the count 3"),
        ({"count": -1}, "shard.count=-1: must be a whole number"),
        ({"version": "x"}, "must be 12 digits"),
        ({"details": 1}, "must be true or false"),
        ({"num_codes": 90}, "must leave shard 2 of 3 its 7 items"),
        ({"more": 1}, "'more' is unknown"),
    ],
)
def test_bad_facts_are_refused(folder: Path, change: dict[str, Any], message: str) -> None:
    settings = read_json(folder)["settings"]
    change_manifest(folder, settings={**settings, "shard": {**settings["shard"], **change}})
    with pytest.raises(BundleError, match=message):
        pathdex.load(folder)


def test_facts_must_be_an_object() -> None:
    with pytest.raises(ConfigError, match="shard: must be an object"):
        ShardFacts.from_stored(None)
