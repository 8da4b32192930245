"""Replaced versions of a shard answer as long as a router uses them."""

from __future__ import annotations

import pytest

import pathdex
from pathdex.recommenders.shard import ShardKey
from pathdex.recommenders.sharding import split_model
from pathdex.server.errors import RequestError
from pathdex.server.kept_shards import MOST, SECONDS, KeptShards, shard_of
from pathdex.server.model_loader import ServedModel
from tests.random_model import random_model

VERSIONS = [f"{number:012x}" for number in range(5)]


def served(version: str, index: int = 0, count: int = 2) -> ServedModel:
    return ServedModel(list(split_model(random_model(20), count, version))[index], version, 0.0, 0.0, ())


def key(number: int, index: int = 0, count: int = 2) -> ShardKey:
    return ShardKey(VERSIONS[number], index, count)


def test_a_version_is_kept_while_it_is_used() -> None:
    now = 0.0
    kept = KeptShards(lambda: now)
    old, new = served(VERSIONS[0]), served(VERSIONS[1])
    kept.keep(old)
    assert kept.versions(new) == [VERSIONS[1], VERSIONS[0]]
    assert kept.find(new, key(1)) is new
    for _ in range(3):
        now += 0.9 * SECONDS
        assert kept.find(new, key(0)) is old
        kept.forget()
    now += 1.1 * SECONDS
    kept.forget()
    with pytest.raises(RequestError, match=f"this shard has version {VERSIONS[1]}") as caught:
        kept.find(new, key(0))
    assert caught.value.status == 409


def test_few_versions_are_kept_and_no_other_models() -> None:
    kept = KeptShards()
    for version in VERSIONS[:4]:
        kept.keep(served(version))
    kept.keep(ServedModel(pathdex.Popularity(), "x", 0.0, 0.0, ()))
    current = served(VERSIONS[4])
    assert kept.versions(current) == [VERSIONS[4], VERSIONS[3], VERSIONS[2]][: MOST + 1]


def test_another_place_and_another_split_are_other_shards() -> None:
    kept = KeptShards()
    first, split, moved = served(VERSIONS[0]), served(VERSIONS[0], 0, 3), served(VERSIONS[0], 1, 2)
    for wanted in (key(0, 0, 3), key(0, 1), key(1, 0, 3), key(0, -1, 0)):
        with pytest.raises(RequestError, match=f"this is {key(0)}, not {wanted}") as caught:
            kept.find(first, wanted)
        assert caught.value.status == 421
    kept.keep(first)
    assert kept.find(split, key(0)) is first
    assert kept.find(split, key(0, 0, 3)) is split
    # Only versions in the place of the current shard are offered to a router that starts.
    assert kept.versions(split) == [VERSIONS[0]]
    kept.keep(split)
    assert kept.versions(moved) == [VERSIONS[0]]
    assert kept.find(moved, key(0)) is first
    with pytest.raises(RequestError, match=f"this is {key(0, 1)}, not {key(0, 2, 3)}"):
        kept.find(moved, key(0, 2, 3))


def test_another_model_is_no_shard() -> None:
    with pytest.raises(RequestError, match="the model is not a shard"):
        shard_of(ServedModel(pathdex.Popularity(), "x", 0.0, 0.0, ()))
