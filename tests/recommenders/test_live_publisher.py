"""A model that is published delta by delta is read as the model it is."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import pathdex
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import BundleError
from pathdex.index.postings import Postings
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.model_delta import ModelDelta
from pathdex.storage.live_folder import delta_folder
from tests.random_deltas import changed_model, random_delta
from tests.random_model import random_model

HISTORY = [100, 101, 102]


def answers(model: object) -> object:
    assert isinstance(model, DeepRetrieval)
    return model.recommend([[], model.items.first_ids(3)], 8)


def test_the_published_model_is_that_of_all_deltas(tmp_path: Path) -> None:
    random, model = np.random.default_rng(0), random_model(20, neighbours=3)
    with LivePublisher.create(tmp_path / "live", model) as publisher:
        for number in range(1, 9):
            delta = random_delta(model, random, weights=number == 4)
            model = changed_model(model, delta)
            assert publisher.publish(delta) == number
            if number == 5:
                publisher.compact()
                assert publisher.version.base.number == 2
            assert answers(pathdex.load(tmp_path / "live")) == answers(model)
        publisher.compact(model)
        assert not publisher.version.deltas
    assert answers(pathdex.load(tmp_path / "live")) == answers(model)
    assert answers(pathdex.load(tmp_path / "live" / "base-000003")) == answers(model)  # An ordinary bundle.


def test_deltas_are_published_while_a_base_is_written(tmp_path: Path) -> None:
    random, model = np.random.default_rng(0), random_model(20)
    with LivePublisher.create(tmp_path / "live", model) as publisher:
        for _ in range(4):
            publisher.compact(wait=False)
            for _ in range(3):
                delta = random_delta(model, random)
                model = changed_model(model, delta)
                publisher.publish(delta)
    assert publisher.version.base.number == 5
    assert answers(pathdex.load(tmp_path / "live")) == answers(model)


def test_a_base_can_be_rolled_back(tmp_path: Path) -> None:
    random, first = np.random.default_rng(0), random_model(20)
    with LivePublisher.create(tmp_path / "live", first) as publisher:
        delta = random_delta(first, random)
        publisher.publish(delta)
        publisher.compact()
        assert publisher.rollback().number == 1
        assert answers(pathdex.load(tmp_path / "live")) == answers(first)
        publisher.rollback(2)
        assert answers(pathdex.load(tmp_path / "live")) == answers(changed_model(first, delta))


def test_a_damaged_delta_stops_a_compaction(tmp_path: Path) -> None:
    random, model = np.random.default_rng(0), random_model(20)
    with LivePublisher.create(tmp_path / "live", model) as publisher:
        publisher.publish(random_delta(model, random))
        (delta_folder(tmp_path / "live", 1) / "delta.safetensors").write_bytes(b"")
        with pytest.raises(BundleError, match="is damaged"):
            publisher.compact()
        publisher.compact(wait=False)
        with pytest.raises(BundleError, match="is damaged"):
            publisher.compact(wait=False)
        publisher.compact(model)  # The publisher's own state needs no delta.
    assert answers(pathdex.load(tmp_path / "live")) == answers(model)


def test_a_folder_without_a_base_says_so(tmp_path: Path) -> None:
    with LivePublisher(tmp_path / "live") as publisher, pytest.raises(BundleError, match="has no base yet"):
        _ = publisher.version


def test_a_model_can_begin_without_items(tmp_path: Path) -> None:
    model = random_model(10)
    state, none = model.model_state, np.empty(0, np.int64)
    postings = Postings.from_sorted(none, np.zeros(1, np.int64), none.astype(np.int32), 0, 4, 2)
    parts = {name: getattr(state, name)[:0] for name in ("rows", "paths", "counts", "log_shares")}
    empty = model._of_state(dataclasses.replace(state, postings=postings, **parts))
    empty._items = Vocabulary([])
    delta = ModelDelta(
        2, np.arange(2), state.rows[:2], state.paths[:2], state.counts[:2], np.arange(2), Vocabulary("ab")
    )
    with LivePublisher.create(tmp_path / "live", empty) as publisher:
        assert pathdex.load(tmp_path / "live").recommend([]) == []
        publisher.publish(delta)
        for _ in range(2):
            found = pathdex.load(tmp_path / "live").recommend(["a"])
            assert [item for item, _ in found] == ["b"]
            publisher.compact()
