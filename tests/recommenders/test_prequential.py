"""Prequential recall by hand."""

import pathdex
from pathdex.data.events import Event
from pathdex.data.item_changes import AddItem, RemoveItem
from pathdex.recommenders.prequential import PrequentialRecall
from pathdex.recommenders.stream_publisher import StreamPublisher
from tests.recommenders.test_online import SMALL, events


def test_an_event_is_hit_if_its_item_is_among_the_best_for_the_history_before_it():
    model = pathdex.DeepRetrieval(**SMALL).partial_fit(events(rounds=2))
    state = model.begin_stream().state
    state.apply([Event("new", 1, 5000.0), Event("new", 2, 5001.0)])
    best = [one.id for one in model.recommend([1, 2], 3, candidates=30)]
    others = [item for item in range(10) if item not in [*best, 1, 2]]
    recall = PrequentialRecall(n=3)
    hits = recall.predict(model, state, [Event("new", item) for item in [*best, *others[:1], 1, "unknown"]])
    assert hits.tolist() == [True, True, True, False, False, False]
    assert recall.recent == recall.overall == 0.5


def test_long_batches_are_sampled_evenly():
    model = pathdex.DeepRetrieval(**SMALL).partial_fit(events())
    recall = PrequentialRecall(n=10, sample=5)
    assert len(recall.predict(model, model.begin_stream().state, [Event("u", 1)] * 100)) == 5
    assert recall.total == 5


def test_without_predictions_there_is_no_figure():
    recall = PrequentialRecall()
    assert recall.recent is None
    assert recall.overall is None


def test_item_changes_are_no_events():
    model = pathdex.DeepRetrieval(**SMALL).partial_fit(events())
    recall, state = PrequentialRecall(), model.begin_stream().state
    assert len(recall.predict(model, state, [AddItem("x"), RemoveItem(1)])) == 0
    assert len(recall.predict(model, state, [AddItem("x"), Event("u", 1), RemoveItem(1)])) == 1
    assert recall.total == 1


def test_a_model_without_items_hits_nothing():
    online = pathdex.DeepRetrieval(**SMALL).begin_stream()
    publisher = StreamPublisher(online)
    online.learn(events())
    publisher.publish()
    online.state.apply([RemoveItem(item) for item in range(10)])
    recall = PrequentialRecall()
    assert recall.predict(publisher.publish(), online.state, [Event("u", 1)]).tolist() == [False]
    assert recall.overall == 0
