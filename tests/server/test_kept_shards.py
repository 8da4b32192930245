"""Replaced versions of a shard answer as long as a router uses them."""

from __future__ import annotations

import pytest

import pathdex
from pathdex.recommenders.sharding import split_model
from pathdex.server.errors import RequestError
from pathdex.server.kept_shards import MOST, SECONDS, KeptShards, shard_of
from pathdex.server.model_loader import ServedModel
from tests.random_model import random_model

VERSIONS = [f"{number:012x}" for number in range(5)]


def served(version: str) -> ServedModel:
    return ServedModel(next(split_model(random_model(20), 2, version)), version, 0.0, 0.0, ())


def test_a_version_is_kept_while_it_is_used() -> None:
    now = 0.0
    kept = KeptShards(lambda: now)
    old, new = served(VERSIONS[0]), served(VERSIONS[1])
    kept.keep(old)
    assert kept.versions(new) == [VERSIONS[1], VERSIONS[0]]
    assert kept.find(new, VERSIONS[1]) is new
    for _ in range(3):
        now += 0.9 * SECONDS
        assert kept.find(new, VERSIONS[0]) is old
        kept.forget()
    now += 1.1 * SECONDS
    kept.forget()
    with pytest.raises(RequestError, match=f"this shard has version {VERSIONS[1]}") as caught:
        kept.find(new, VERSIONS[0])
    assert caught.value.status == 409


def test_few_versions_are_kept_and_no_other_models() -> None:
    kept = KeptShards()
    for version in VERSIONS[:4]:
        kept.keep(served(version))
    kept.keep(ServedModel(pathdex.Popularity(), "x", 0.0, 0.0, ()))
    current = served(VERSIONS[4])
    assert kept.versions(current) == [VERSIONS[4], VERSIONS[3], VERSIONS[2]][: MOST + 1]


def test_another_model_is_no_shard() -> None:
    with pytest.raises(RequestError, match="the model is not a shard"):
        shard_of(ServedModel(pathdex.Popularity(), "x", 0.0, 0.0, ()))
