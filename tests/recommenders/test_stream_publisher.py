"""Publishing a stream: the live model and the folder have the state of the stream after every publish."""

import numpy as np
import polars as pl
import pytest

import pathdex
from pathdex.data.item_changes import AddItem, RemoveItem
from pathdex.data.item_details import ItemDetails
from pathdex.errors import QueryError, StorageError
from pathdex.index.neighbours import without_hidden
from pathdex.recommenders import stream_publisher
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.live_reader import LiveReader, load_live
from pathdex.recommenders.online import LEAST_COUNT, NEW_SIMILARITY
from pathdex.recommenders.stream_neighbours import StreamNeighbours
from pathdex.recommenders.stream_publisher import StreamPublisher
from pathdex.recommenders.verification import verify_live
from pathdex.retrieval.score_weights import ScoreWeights
from pathdex.training.loop import TrainingState
from pathdex.training.stream.options import StreamOptions
from tests.recommenders.test_online import SMALL, events

OPTIONS = StreamOptions(batch_events=64, m_step_events=300)
HISTORIES = [[], [1], [2, 3], [4, 5, 6, 1]]


def answers(model):
    """Everything that a query shows, for known and unknown items."""
    known = [[one for one in history if one in model.items] for history in HISTORIES]
    found = [model.recommend(history, 5) for history in known]
    return found, [sorted(model.item_paths(item)) for item, _ in found[0]]


def assert_published(publisher):
    """The live model and the folder are the state of the stream."""
    state, ids = publisher.online.snapshot_by_slot([])
    expected = DeepRetrieval.of_state(state, ids)
    assert answers(publisher.model) == answers(expected)
    assert publisher.model.items.ids(range(len(ids))) == ids.ids(range(len(ids)))
    if publisher.folder is not None:
        assert answers(load_live(publisher.folder.path)) == answers(expected)


@pytest.fixture
def folder(tmp_path):
    with LivePublisher(tmp_path / "live") as live:
        yield live


def test_every_publish_has_the_state_of_the_stream(folder):
    online = pathdex.DeepRetrieval(**SMALL).begin_stream(OPTIONS)
    publisher = StreamPublisher(online, folder)
    assert publisher.publish() is None
    rows = events(rounds=3)
    for first in range(0, len(rows), 100):
        online.learn(rows[first : first + 100])
        publisher.publish()
        assert_published(publisher)
    assert len(folder.version.bases) == 1
    assert len(folder.version.deltas) == -(-len(rows) // 100) - 1


def test_titles_are_published_and_new_items_have_none(folder):
    online = pathdex.DeepRetrieval(**SMALL).begin_stream(OPTIONS)
    table = ItemDetails.read(pl.DataFrame({"item": [1, 2], "title": ["One", "Two"], "year": [3, 4]}))
    publisher = StreamPublisher(online, folder, details=table)
    online.learn(events(rounds=1))
    publisher.publish()
    online.state.apply([AddItem("new")])
    publisher.publish()
    folder.compact()
    for model in (publisher.model, load_live(folder.path)):
        titles = {one.id: one.title for one in model.recommend([], 99)}
        assert {str(item): title for item, title in titles.items() if title} == {"1": "One", "2": "Two"}
        assert titles["new"] is None
        assert {str(one.id) for one in model.recommend([], 99, where={"year": 3})} == {"1"}
        state = model.state([1])
        assert {str(one.id) for one in model.recommend_next(state, 9, where={"year": [3, 4]})} == {"2"}
    assert verify_live(folder.path) == []


def test_all_items_leave_and_others_come(folder):
    online = pathdex.DeepRetrieval(**SMALL).begin_stream(OPTIONS)
    publisher = StreamPublisher(online, folder)
    online.learn(events(rounds=1))
    publisher.publish()
    ids, _ = online.state.catalogue.vocabulary()
    online.state.apply([RemoveItem(item) for item in ids.ids(range(len(ids)))])
    assert publisher.publish().recommend([], 5) == load_live(folder.path).recommend([], 5) == []
    folder.compact()
    assert load_live(folder.path).items.num_ids == 0
    assert verify_live(folder.path) == []
    with pytest.raises(QueryError, match="the model has no items, since all were removed; add one first"):
        publisher.model.health()
    # A stream that continues while it is empty publishes that as well.
    publisher = StreamPublisher(online, folder)
    assert publisher.publish().items.num_ids == 0
    online.state.apply([AddItem("new")])
    assert [one.id for one in publisher.publish().recommend([], 5)] == ["new"]
    assert_published(publisher)


def test_a_removal_that_was_not_published_is_published_by_the_next_process(folder):
    online = pathdex.DeepRetrieval(**SMALL).begin_stream(OPTIONS)
    online.learn(events(rounds=1))
    StreamPublisher(online, folder).publish()
    ids, _ = online.state.catalogue.vocabulary()
    online.state.apply([RemoveItem(item) for item in ids.ids(range(len(ids)))])
    StreamPublisher(online, folder).publish()
    assert load_live(folder.path).items.num_ids == 0


def test_items_leave_and_their_slots_are_taken_by_others(folder):
    online = pathdex.DeepRetrieval(**SMALL).begin_stream(OPTIONS)
    publisher = StreamPublisher(online, folder)
    online.learn(events(rounds=1))
    publisher.publish()
    online.remove_items([1, 2])
    publisher.publish()
    assert_published(publisher)
    assert 1 not in publisher.model.items
    online.add_items([101], {101: [3]})
    online.remove_items([4])
    online.add_items([4])
    online.add_items([102])
    online.remove_items([102])
    publisher.publish()
    assert_published(publisher)
    assert publisher.model.items.code(101) == 1
    assert len(folder.version.bases) == 1


def test_an_item_that_came_and_went_between_two_publishes_has_no_id(folder):
    online = pathdex.DeepRetrieval(**SMALL).begin_stream(OPTIONS)
    publisher = StreamPublisher(online, folder)
    online.learn(events(rounds=1))
    publisher.publish()
    slots = online.state.catalogue.num_slots
    online.add_items([101, 102])
    online.remove_items([101])
    publisher.publish()
    assert_published(publisher)
    assert publisher.model.items.removed.tolist() == [slots]
    assert publisher.model.items.code(102) == slots + 1


def test_the_first_text_id_needs_a_new_base(folder):
    online = pathdex.DeepRetrieval(**SMALL).begin_stream(OPTIONS)
    publisher = StreamPublisher(online, folder)
    online.learn([(1, 10), (1, 11), (2, 10)])
    publisher.publish()
    assert publisher.model.items.kind == "int"
    online.learn([(2, "tea")])
    publisher.publish()
    assert publisher.model.items.kind == "str"
    assert "tea" in load_live(folder.path).items
    assert len(folder.version.bases) == 2


def test_a_model_that_is_continued_keeps_its_neighbours_except_for_removed_items(folder):
    data = pathdex.read(pl.DataFrame(events(rounds=2), schema=["user", "item", "time"], orient="row"))
    model = pathdex.DeepRetrieval(**SMALL, epochs=2, rounds=1, neighbours=3).fit(data, callbacks=[])
    online = model.begin_stream(OPTIONS)
    publisher = StreamPublisher(online, folder)
    publisher.publish()
    assert publisher.model.model_state.neighbours is not None
    online.remove_items([1])
    online.add_items([101])
    publisher.publish()
    assert_published(publisher)


def killed(saved, options=OPTIONS, **parameters):
    """A stream that starts again from a checkpoint."""
    again = pathdex.DeepRetrieval(**SMALL, **parameters).begin_stream(options)
    again.state.load_state_dict(saved)
    return again


def checkpoint(online):
    state = online.state.state_dict()
    arrays = {name: np.array(one) for name, one in state.arrays.items()}
    return TrainingState(dict(state.values), arrays)


def test_after_a_kill_the_difference_is_published_as_a_delta(folder):
    rows = events(rounds=3)
    online = pathdex.DeepRetrieval(**SMALL).begin_stream(OPTIONS)
    publisher = StreamPublisher(online, folder)
    online.learn(rows[:100])
    publisher.publish()
    saved = checkpoint(online)
    online.learn([*rows[100:150], (1, 777), (1, 778)])
    online.remove_items([3])
    publisher.publish()
    reader = LiveReader(folder.path)
    followed = reader.load()
    publisher = StreamPublisher(killed(saved), folder)
    publisher.publish()
    assert 777 not in publisher.model.items
    assert 3 in publisher.model.items
    assert answers(publisher.model) == answers(DeepRetrieval.of_state(*publisher.online.snapshot_by_slot([])))
    assert len(folder.version.bases) == 1
    assert reader.update(followed) == 1
    assert answers(followed) == answers(publisher.model)
    publisher.online.learn(rows[100:])
    publisher.publish()
    assert reader.update(followed) == 1
    assert answers(followed) == answers(publisher.model)


def find_neighbours(online):
    online.neighbours.begin()
    online.neighbours.take(wait=True)


def neighbours_of(model, item):
    lists, code = without_hidden(model.model_state.neighbours, len(model.items)), model.items.code(item)
    return lists.items[lists.offsets[code] : lists.offsets[code + 1]].tolist()


def bias_of(model, item):
    return model.model_state.rows[model.items.code(item), -1]


def test_the_bias_of_a_new_item_is_raised_until_its_neighbours_are_known(folder):
    online = pathdex.DeepRetrieval(**SMALL, neighbours=3, neighbour_weight=0.5).begin_stream(OPTIONS)
    publisher = StreamPublisher(online, folder)
    rows = events(rounds=3)
    online.learn(rows)
    find_neighbours(online)
    publisher.publish()
    online.learn([(1, 777)])
    publisher.publish()
    assert_published(publisher)
    learner, slot = online.state.learner, online.state.catalogue.slot(777)
    raised_by = 0.5 * np.log1p(NEW_SIMILARITY / ScoreWeights.from_config(online.config).smoothing)
    assert bias_of(publisher.model, 777) == pytest.approx(learner.rows[slot, -1] + raised_by)
    assert bias_of(publisher.model, 1) == learner.rows[online.state.catalogue.slot(1), -1]
    # Nothing is learned about it between, so only the neighbours are the reason to publish it again.
    find_neighbours(online)
    publisher.publish()
    assert neighbours_of(publisher.model, 777)
    assert bias_of(publisher.model, 777) == learner.rows[slot, -1]
    assert bias_of(load_live(folder.path), 777) == learner.rows[slot, -1]
    assert_published(publisher)


def test_an_item_that_is_new_but_frequent_is_not_raised():
    online = pathdex.DeepRetrieval(**SMALL, neighbours=3).begin_stream(OPTIONS)
    publisher = StreamPublisher(online)
    online.learn(events(rounds=3))
    find_neighbours(online)
    publisher.publish()
    online.learn([(user, 777) for user in range(LEAST_COUNT)])
    publisher.publish()
    assert bias_of(publisher.model, 777) == online.state.learner.rows[online.state.catalogue.slot(777), -1]


def test_after_a_kill_items_keep_the_neighbours_that_were_published(folder):
    options = StreamOptions(batch_events=64, m_step_events=10_000)  # So that none are found unless the test asks.
    online = pathdex.DeepRetrieval(**SMALL, neighbours=3).begin_stream(options)
    publisher = StreamPublisher(online, folder)
    online.learn(events(rounds=3))
    find_neighbours(online)
    publisher.publish()
    saved, gone = checkpoint(online), publisher.model.items.code(3)
    known = neighbours_of(publisher.model, 1)
    online.learn([(1, 777)])
    online.remove_items([3])
    publisher.publish()
    publisher = StreamPublisher(killed(saved, options, neighbours=3), folder)
    publisher.publish()
    assert_published(publisher)
    assert gone in known
    assert neighbours_of(publisher.model, 1) == [code for code in known if code != gone]
    assert neighbours_of(publisher.model, 3) == []
    again = publisher.online
    again.learn([(2, 778)])
    publisher.publish()
    assert bias_of(publisher.model, 778) > again.state.learner.rows[again.state.catalogue.slot(778), -1]
    find_neighbours(again)
    publisher.publish()
    assert bias_of(publisher.model, 778) == again.state.learner.rows[again.state.catalogue.slot(778), -1]
    assert neighbours_of(publisher.model, 3)
    assert_published(publisher)


def test_a_stream_that_begins_again_keeps_the_published_model_until_it_has_events(folder):
    online = pathdex.DeepRetrieval(**SMALL).begin_stream(OPTIONS)
    empty = checkpoint(online)
    online.learn(events(rounds=1))
    StreamPublisher(online, folder).publish()
    before = folder.version
    publisher = StreamPublisher(killed(empty), folder)
    assert publisher.publish() is None
    assert folder.version == before
    publisher.online.learn(events(rounds=1)[:20])
    publisher.publish()
    assert_published(publisher)
    assert len(folder.version.bases) == 1


def test_after_a_kill_the_final_publish_has_the_neighbours_of_its_moment(folder, monkeypatch):
    monkeypatch.setattr(StreamNeighbours, "is_due", False)
    online = pathdex.DeepRetrieval(**SMALL, neighbours=3).begin_stream(OPTIONS)
    online.learn(events(rounds=3))
    StreamPublisher(online, folder).publish()
    assert load_live(folder.path).model_state.neighbours is None
    publisher = StreamPublisher(killed(checkpoint(online), neighbours=3), folder)
    publisher.publish(final=True)
    assert neighbours_of(load_live(folder.path), 1)
    assert_published(publisher)


def test_after_a_kill_a_folder_with_a_damaged_delta_gets_a_new_base(folder):
    online = pathdex.DeepRetrieval(**SMALL).begin_stream(OPTIONS)
    publisher = StreamPublisher(online, folder)
    for part in (events(rounds=1), events(rounds=1), events(rounds=1)):
        online.learn(part)
        publisher.publish()
    (folder.path / "deltas" / "000000001" / "delta.safetensors").write_bytes(b"x")
    saved = checkpoint(online)
    publisher = StreamPublisher(killed(saved), folder)
    with pytest.warns(UserWarning, match="publishes are left out"):
        publisher.publish()
    assert_published(publisher)
    assert not folder.version.deltas


def test_a_failed_publish_is_made_up_by_the_next(folder, monkeypatch):
    online = pathdex.DeepRetrieval(**SMALL).begin_stream(OPTIONS)
    publisher = StreamPublisher(online, folder)
    online.learn(events(rounds=1))
    publisher.publish()
    online.learn([(1, 777)])

    def fail(_):
        raise StorageError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(folder, "publish", fail)
        with pytest.raises(StorageError, match="disk full"):
            publisher.publish()
    assert 777 not in publisher.model.items
    publisher.publish()
    assert_published(publisher)
    assert 777 in publisher.model.items


def test_many_deltas_are_compacted(folder, monkeypatch):
    monkeypatch.setattr(stream_publisher, "MAX_DELTAS", 3)
    online = pathdex.DeepRetrieval(**SMALL).begin_stream(OPTIONS)
    publisher = StreamPublisher(online, folder)
    for _ in range(8):
        online.learn(events(rounds=1))
        publisher.publish()
    folder.close()
    folder_again = LiveReader(folder.path)
    assert answers(folder_again.load()) == answers(publisher.model)
    assert folder.version.base.number > 1
    assert len(folder.version.deltas) < 8
