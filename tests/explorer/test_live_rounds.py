"""The publishes that a live folder keeps, as states of sampled items."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pathdex.explorer.change_schemas import ReplayQuery
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.live_rounds import keeps_publishes, read_live_rounds
from pathdex.explorer.overview import abilities
from pathdex.explorer.replay import replay
from pathdex.recommenders.live_reader import LiveReader
from tests.random_model import random_model
from tests.recommenders.test_live_reader import Feed


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[Feed]:
    feed = Feed(tmp_path / "live")
    yield feed
    feed.publisher.close()


def states_of(feed: Feed, count: int) -> list[np.ndarray]:
    """The paths before and after so many publishes."""
    states = [np.asarray(feed.model.paths).copy()]
    for _ in range(count):
        feed.publish()
        states.append(np.asarray(feed.model.paths).copy())
    return states


def test_the_states_are_those_that_were_published(feed: Feed) -> None:
    states = states_of(feed, 5)
    feed.publisher.compact()
    states += states_of(feed, 3)[1:]
    found = read_live_rounds(feed.path, np.arange(20))
    assert found is not None
    assert found.publishes.tolist() == list(range(9))
    assert found.left_out == 0
    assert 0 < len(found.items) < 20  # Those that were removed or replaced are not followed.
    for state, expected in zip(found.rounds, states, strict=True):
        assert np.array_equal(state, expected[found.items])


def test_publishes_after_a_rollback_begin_at_the_base(feed: Feed) -> None:
    before = feed.model
    states_of(feed, 3)
    feed.publisher.compact()
    feed.publisher.rollback()
    feed.model = before
    states = states_of(feed, 2)
    found = read_live_rounds(feed.path, np.arange(20))
    assert found is not None
    assert found.publishes.tolist() == [0, 4, 5]
    assert np.array_equal(found.rounds[-1], states[-1][found.items])


def test_many_publishes_are_thinned_and_a_bound_is_told(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    states = states_of(feed, 9)
    monkeypatch.setattr("pathdex.explorer.live_rounds.MAX_ROUNDS", 4)
    monkeypatch.setattr("pathdex.explorer.live_rounds.MAX_DELTAS", 6)
    found = read_live_rounds(feed.path, np.arange(20))
    assert found is not None
    assert found.publishes.tolist() == [0, 2, 4, 6]
    assert np.array_equal(found.rounds[-1], states[6][found.items])
    assert found.left_out == 3


def test_a_live_model_is_replayed_over_its_publishes(feed: Feed) -> None:
    def explorer() -> Explorer:
        return Explorer(LiveReader(feed.path).load(), "v", folder=feed.path)

    first = explorer()
    assert not keeps_publishes(feed.path)
    assert not abilities(first).rounds
    nothing = replay(first, ReplayQuery())
    assert (nothing.source, nothing.recorded, nothing.rounds) == ("live", False, [])
    assert "keeps only the present state" in str(nothing.note)

    states_of(feed, 4)
    second = explorer()
    assert abilities(second).rounds
    found = replay(second, ReplayQuery(items=3))
    assert (found.source, found.recorded, found.note) == ("live", True, None)
    assert [one.number for one in found.rounds] == [0, 1, 2, 3, 4]
    assert all(one.time for one in found.rounds)
    assert found.rounds[0].moved is None
    for item in found.items:
        now = [path for path in second.model.item_paths(item.id) if path]
        assert sorted(map(tuple, item.paths[-1])) == sorted(map(tuple, now))


def test_a_live_model_without_a_folder_has_nothing_to_replay() -> None:
    from pathdex.recommenders.live_model import LiveModel

    explorer = Explorer(LiveModel(random_model()), "v")
    assert not abilities(explorer).rounds
    assert not replay(explorer, ReplayQuery()).recorded
