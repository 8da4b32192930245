"""Neighbours of a stream: found again in recent histories, published as a delta, and carried by their items."""

import numpy as np
import polars as pl
import pytest

import pathdex
from pathdex.data.matrix import interaction_matrix
from pathdex.data.ragged import Ragged
from pathdex.index.neighbours import nearest_items
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.model_state import SHRINKAGE
from pathdex.recommenders.stream_neighbours import StreamNeighbours
from pathdex.recommenders.stream_publisher import StreamPublisher
from pathdex.training.stream.options import StreamOptions
from tests.recommenders.test_online import SMALL, events

OPTIONS = StreamOptions(batch_events=30, m_step_events=120)


def online_of(number, **parameters):
    online = pathdex.DeepRetrieval(**SMALL, **parameters).begin_stream(OPTIONS)
    online.learn(events(rounds=4)[:number])
    return online


def expected_lists(online):
    """The neighbours of all kept histories, by the function of batch training."""
    state = online.state
    users = sorted({user for user, _, _ in events()})
    histories = [state.catalogue.slots_of(state.histories.tokens(str(user))) for user in users]
    rows = Ragged.from_rows([np.array(row, np.int32) for row in histories if row])
    matrix = interaction_matrix(rows, state.catalogue.num_slots, binary=True)
    return nearest_items(matrix, online.config.neighbours, shrinkage=SHRINKAGE)


def assert_same_lists(found, expected):
    for one, other in zip(found[:3], expected[:3], strict=True):
        assert np.array_equal(one, other)


def test_they_are_found_in_the_kept_histories_after_half_an_m_step():
    early, late = online_of(59), online_of(90)
    assert not early.neighbours.is_due
    assert late.neighbours.is_due
    late.neighbours.begin()
    assert not late.neighbours.is_due
    late.neighbours.take(wait=True)
    slots = np.arange(late.state.catalogue.num_slots)
    assert_same_lists(late.neighbours.lists(slots), expected_lists(late))
    assert not late.neighbours.is_due


def test_a_model_without_neighbours_finds_none():
    assert not online_of(120, neighbours=0).neighbours.is_due


def test_a_removed_item_and_the_one_in_its_place_have_no_neighbours():
    online = online_of(120)
    online.neighbours.begin()
    online.neighbours.take(wait=True)
    online.remove_items([3])
    online.add_items([101])
    slot = online.state.catalogue.slot(101)
    lists = online.neighbours.lists(np.arange(online.state.catalogue.num_slots))
    assert lists.offsets[slot] == lists.offsets[slot + 1]
    assert slot not in lists.items
    assert len(lists.items) > 0


def test_a_model_that_is_continued_keeps_its_lists_until_the_stream_is_as_long_as_its_training():
    rows = pl.DataFrame(events(rounds=1), schema=["user", "item", "time"], orient="row")
    model = pathdex.DeepRetrieval(**SMALL, epochs=1, rounds=1, neighbours=3).fit(pathdex.read(rows), callbacks=[])
    trained_on = int(model.model_state.counts.sum())
    online = model.begin_stream(OPTIONS)
    online.learn(events(rounds=4)[: trained_on - 1])
    assert not online.neighbours.is_due
    online.learn([(1, 2, 999.0)])
    assert online.neighbours.is_due


def test_the_publisher_publishes_them_with_a_delta_and_again_if_that_fails(tmp_path, monkeypatch):
    online = online_of(30)
    with LivePublisher(tmp_path / "live") as folder:
        publisher = StreamPublisher(online, folder)
        publisher.publish()
        assert publisher.model.model_state.neighbours is None
        online.learn(events(rounds=4)[30:120])
        online.neighbours.begin()
        online.neighbours.take(wait=True)
        with monkeypatch.context() as patch:
            patch.setattr(folder, "publish", lambda delta: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                publisher.publish()
        publisher.publish()
        assert_same_lists(publisher.model.model_state.neighbours, expected_lists(online))
        again = pathdex.load(tmp_path / "live")
        assert_same_lists(again.model_state.neighbours, expected_lists(online))
        assert again.recommend([1, 2], 5) == publisher.model.recommend([1, 2], 5)
        assert len(folder.version.bases) == 1


def test_a_failure_is_raised_where_the_result_is_taken(monkeypatch):
    online = online_of(90)
    monkeypatch.setattr("pathdex.recommenders.stream_neighbours.nearest_items", lambda *_, **__: 1 / 0)
    near = StreamNeighbours(online.state)
    near.begin()
    with pytest.raises(ZeroDivisionError):
        near.take(wait=True)
