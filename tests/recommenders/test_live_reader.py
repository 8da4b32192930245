"""A reader follows a live folder, and starts again from the base where the chain broke."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

import pathdex
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.live_reader import LiveReader
from pathdex.storage.live_folder import delta_folder
from tests.random_deltas import changed_model, random_delta
from tests.random_model import random_model
from tests.recommenders.test_live_publisher import answers


class Feed:
    """A publisher and the model that it has published."""

    def __init__(self, path: Path) -> None:
        self.path, self.random = path, np.random.default_rng(0)
        self.model: DeepRetrieval = random_model(20)
        self.publisher = LivePublisher.create(path, self.model)

    def publish(self) -> int:
        delta = random_delta(self.model, self.random)
        self.model = changed_model(self.model, delta)
        return self.publisher.publish(delta)


@pytest.fixture
def feed(tmp_path: Path):
    feed = Feed(tmp_path / "live")
    yield feed
    feed.publisher.close()


def test_a_reader_applies_only_new_deltas(feed: Feed) -> None:
    feed.publish()
    reader = LiveReader(feed.path)
    model = reader.load()
    assert reader.update(model) == 0
    feed.publish()
    feed.publish()
    assert [delta.number for delta in reader.poll() or []] == [2, 3]
    assert reader.update(model) == 2
    assert answers(model) == answers(feed.model)
    feed.publisher.compact()
    feed.publish()
    assert reader.update(model) == 1  # A new base costs a reader that is up to date nothing.
    assert answers(model) == answers(feed.model)


def test_a_reader_that_missed_pruned_deltas_loads_the_base(feed: Feed) -> None:
    reader = LiveReader(feed.path)
    model = reader.load()
    for _ in range(3):
        feed.publish()
        feed.publisher.compact()
    assert reader.update(model) is None
    assert answers(reader.load()) == answers(feed.model)


def test_a_rollback_is_followed(feed: Feed) -> None:
    first = feed.model
    reader = LiveReader(feed.path)
    feed.publish()
    feed.publisher.compact()
    model = reader.load()
    feed.publisher.rollback(1)
    assert reader.update(model) is None
    model = reader.load()
    assert answers(model) == answers(first)
    feed.publisher.rollback(2)
    feed.publish()  # On another chain than the one that the reader is on.
    assert reader.update(model) is None
    assert answers(reader.load()) == answers(feed.model)


@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_a_damaged_delta_is_waited_for_until_a_base_contains_it(feed: Feed, damage: str) -> None:
    reader = LiveReader(feed.path)
    model = reader.load()
    feed.publish()
    good = feed.model
    feed.publish()
    folder = delta_folder(feed.path, 2)
    if damage == "missing":
        shutil.rmtree(folder)
    else:
        (folder / "delta.safetensors").write_bytes(b"x")
    assert reader.update(model) == 1
    assert reader.update(model) == 0
    assert answers(model) == answers(good)
    with pytest.warns(UserWarning, match="the last 1 publishes are left out until .* is compacted"):
        assert answers(pathdex.load(feed.path)) == answers(good)
    feed.publisher.compact(feed.model)
    assert reader.update(model) is None
    assert answers(reader.load()) == answers(feed.model)


def test_deltas_before_one_that_does_not_fit_count(feed: Feed) -> None:
    reader = LiveReader(feed.path)
    model = reader.load()
    feed.publish()
    feed.publish()
    good = feed.model
    feed.publisher.publish(random_delta(random_model(90), feed.random))
    assert reader.update(model) is None
    assert answers(model) == answers(good)
    with pytest.warns(UserWarning, match="the last 1 publishes are left out"):
        assert answers(reader.load()) == answers(good)
    assert reader.position is not None
    assert reader.position.delta == 2


def test_a_reader_during_publishes_and_compactions(feed: Feed) -> None:
    states, done = [answers(feed.model)], threading.Event()

    def publish() -> None:
        for number in range(12):
            delta = random_delta(feed.model, feed.random)
            feed.model = changed_model(feed.model, delta)
            states.append(answers(feed.model))
            feed.publisher.publish(delta)
            if number % 3 == 2:
                feed.publisher.compact()
        done.set()

    thread = threading.Thread(target=publish)
    thread.start()
    reader, seen = LiveReader(feed.path), []
    model = reader.load()
    while True:
        last = done.is_set()
        if reader.update(model) is None:
            model = reader.load()
        seen.append(states.index(answers(model)))
        assert answers(pathdex.load(feed.path)) in states
        if last:
            break
    thread.join()
    assert seen == sorted(seen)
    assert answers(model) == answers(feed.model)
