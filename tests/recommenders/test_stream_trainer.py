"""The loop over an event source: batches, checkpoints, publishing, stopping and resuming."""

import dataclasses

import numpy as np
import pytest

import pathdex
from pathdex.data.events import Event
from pathdex.data.item_changes import AddItem, RemoveItem
from pathdex.errors import ConfigError, IndexHealthWarning, StorageError
from pathdex.recommenders import stream_trainer
from pathdex.recommenders.online import LEAST_COUNT
from pathdex.recommenders.prequential import PrequentialRecall
from pathdex.recommenders.stream_trainer import StreamTrainer
from pathdex.training.loop import TrainingState
from pathdex.training.stream.options import StreamOptions
from tests.recommenders.stream_source import ListSource
from tests.recommenders.test_online import SMALL, events

OPTIONS = StreamOptions(batch_events=64, m_step_events=200)


class MemoryKeeper:
    """Keeps checkpoints in memory; can fail like a process that dies."""

    histories = live = None

    def __init__(self, die_after=None):
        self.saved, self.published, self.failures, self.die_after, self.steps = None, [], [], die_after, 0

    def restore(self, online):
        if self.saved is not None:
            online.state.load_state_dict(self.saved)
        return self.saved is not None

    def checkpoint(self, online):
        state = online.state.state_dict()
        self.saved = TrainingState(dict(state.values), {name: np.array(one) for name, one in state.arrays.items()})
        online.state.committed()

    def on_step_end(self, progress):
        self.steps += 1
        if self.steps == self.die_after:
            raise InterruptedError

    def on_idle(self, progress):
        self.idle = progress

    def on_publish(self, model):
        self.published.append(int(model.model_state.counts.sum()))

    def on_write_failure(self, error):
        self.failures.append(error)


def trainer_of(source, **changes):
    given = {"options": OPTIONS, "publish_seconds": 0.0, "checkpoint_seconds": 0.0, **changes}
    return StreamTrainer(source, pathdex.DeepRetrieval(**SMALL), **given)


def final_bits(trainer):
    arrays = trainer.online.state.state_dict().arrays
    return {name: one.tobytes() for name, one in arrays.items() if not name.startswith("histories.")}


def test_all_events_are_learned_from_and_the_model_answers():
    source = ListSource(events(rounds=3))
    trainer = trainer_of(source)
    model = trainer.run()
    assert trainer.online.state.counters.learned == len(source.events)
    assert len(model.recommend([1, 2], 5)) == 5
    assert source.acknowledged[-1] == len(source.events)


def test_the_result_does_not_depend_on_how_much_a_read_returns():
    whole, chopped = (trainer_of(ListSource(events(rounds=3), chunk)) for chunk in (10**9, 7))
    whole.run()
    chopped.run()
    assert final_bits(whole) == final_bits(chopped)


@pytest.mark.parametrize("died_after", [1, 2, 5])
def test_a_trainer_that_died_continues_to_the_same_bits(died_after):
    expected = trainer_of(ListSource(events(rounds=3)))
    expected.run()
    keeper = MemoryKeeper(died_after)
    with pytest.raises(InterruptedError):
        trainer_of(ListSource(events(rounds=3)), keeper=keeper, callbacks=[keeper]).run()
    resumed = trainer_of(ListSource(events(rounds=3)), keeper=keeper)
    resumed.run()
    assert final_bits(resumed) == final_bits(expected)
    assert resumed.online.state.counters == expected.online.state.counters


class SpoiledSource(ListSource):
    """Every third event is malformed, and every seventh was dropped by the broker."""

    def read(self, max_events, timeout):
        found, first = super().read(max_events, timeout), self.at
        if found is None:
            return None
        places = range(first - len(found.events), first)
        kept = [one for place, one in zip(places, found.events, strict=True) if place % 3 and place % 7]
        malformed = sum(place % 3 == 0 for place in places)
        return dataclasses.replace(
            found, events=kept, malformed=malformed, lost=len(found.events) - len(kept) - malformed
        )


@pytest.mark.parametrize("died_after", [1, 3])
def test_malformed_and_lost_events_are_counted_once_whatever_dies(died_after):
    rows, keeper, seen = events(rounds=3), MemoryKeeper(died_after), []
    with pytest.raises(InterruptedError):
        trainer_of(SpoiledSource(rows, 5), keeper=keeper, callbacks=[keeper], checkpoint_seconds=1e9).run()
    with pytest.raises(InterruptedError):
        trainer_of(SpoiledSource(rows, 5), keeper=keeper, callbacks=[MemoryKeeper(2)]).run()
    last = MemoryKeeper()
    last.on_step_end = seen.append
    resumed = trainer_of(SpoiledSource(rows, 5), keeper=keeper, callbacks=[last])
    resumed.run()
    malformed = sum(place % 3 == 0 for place in range(len(rows)))
    lost = sum(place % 7 == 0 and place % 3 != 0 for place in range(len(rows)))
    counters = resumed.online.state.counters
    assert (counters.malformed, counters.lost, counters.events) == (malformed, lost, len(rows) - malformed - lost)
    assert (seen[-1].malformed, seen[-1].lost) == (malformed, lost)


def test_events_are_acknowledged_only_after_their_checkpoint():
    source, keeper = ListSource(events(rounds=2)), MemoryKeeper()
    trainer_of(source, keeper=keeper, checkpoint_seconds=1e9).run()
    assert source.acknowledged == [len(source.events)]
    assert keeper.saved.values["position"]["at"] == len(source.events)


def test_it_stops_after_the_step_and_keeps_what_it_learned():
    source, keeper = ListSource(events(rounds=5), endless=True), MemoryKeeper()
    trainer = trainer_of(source, keeper=keeper, checkpoint_seconds=1e9, publish_seconds=1e9)
    keeper.on_step_end = lambda progress: trainer.stop() if progress.events >= 128 else None
    trainer.callbacks = [keeper]
    trainer.run()
    assert keeper.saved.values["position"] == {"source": "list", "at": 128}
    assert keeper.published == [128]


def test_a_failed_checkpoint_is_reported_and_tried_again_while_learning_goes_on():
    source, keeper = ListSource(events(rounds=3)), MemoryKeeper()
    write, failures = keeper.checkpoint, iter([None, StorageError("disk full"), StorageError("disk full")])

    def checkpoint(online):
        if (error := next(failures, None)) is not None:
            raise error
        write(online)

    keeper.checkpoint = checkpoint
    trainer = trainer_of(source, keeper=keeper, callbacks=[keeper])
    trainer.run()
    assert [str(error) for error in keeper.failures] == ["disk full", "disk full"]
    assert trainer.online.state.counters.learned == len(source.events)
    assert source.acknowledged[0] == 3 * OPTIONS.batch_events
    assert source.acknowledged[-1] == keeper.saved.values["position"]["at"] == len(source.events)


def test_writing_that_fails_for_too_long_or_at_the_end_stops_the_stream(monkeypatch):
    def checkpoint(online):
        if online.state.counters.events:
            raise StorageError("disk full")

    keeper = MemoryKeeper()
    keeper.checkpoint = checkpoint
    with pytest.raises(StorageError, match="disk full"):
        trainer_of(ListSource(events()), keeper=keeper, checkpoint_seconds=1e9).run()
    assert not keeper.failures
    monkeypatch.setattr(stream_trainer, "GIVE_UP_SECONDS", 0.02)
    source = ListSource(events(), endless=True)
    with pytest.raises(StorageError, match="disk full"):
        trainer_of(source, keeper=keeper, callbacks=[keeper]).run()
    assert keeper.failures
    assert not source.acknowledged


def test_a_catalogue_that_outgrows_its_nodes_is_reported_once():
    rows = [(user, item, time) for time in range(4) for user in range(8) for item in range(25 * time, 25 * time + 5)]
    trainer = trainer_of(ListSource(rows), options=StreamOptions(batch_events=20, m_step_events=20))
    with pytest.warns(IndexHealthWarning) as found:
        trainer.run()
    assert [str(one.message)[:19] for one in found] == ["W301: 20 items need"]


def test_an_idle_stream_publishes_and_keeps_its_last_events():
    source, keeper = ListSource(events(rounds=1), endless=True), MemoryKeeper()
    trainer = trainer_of(
        source, keeper=keeper, callbacks=[keeper], batch_seconds=0.01, publish_seconds=0.05, checkpoint_seconds=0.05
    )
    idle = source.read

    def read(max_events, timeout):
        if source.at == len(source.events) and keeper.published and keeper.saved is not None:
            trainer.stop()
        return idle(max_events, timeout)

    source.read = read
    trainer.run()
    assert keeper.published[-1] == len(source.events)
    assert keeper.saved.values["position"]["at"] == len(source.events)


def test_a_batch_does_not_wait_for_more_events_than_come_in_time():
    """A source that always has another event, but never many, must not fill a batch for minutes."""
    source = ListSource(events(rounds=3), chunk=2, endless=True)
    sizes, read = [], source.read
    source.read = lambda *given: dataclasses.replace(read(*given), drained=True)
    trainer = trainer_of(source, batch_seconds=0.1)
    keeper = MemoryKeeper()
    keeper.on_step_end = lambda progress: (sizes.append(progress.events), trainer.stop())
    trainer.callbacks = [keeper]
    trainer.run()
    assert 0 < sizes[0] < OPTIONS.batch_events


def test_malformed_events_of_a_file_do_not_cut_a_batch():
    source = ListSource(events(rounds=3), chunk=2)
    read = source.read

    def spoiled(max_events, timeout):
        found = read(max_events, timeout)
        return found if found is None or source.at % 4 else dataclasses.replace(found, events=[], malformed=2)

    source.read = spoiled
    trainer, sizes = trainer_of(source, batch_seconds=0.0), []
    keeper = MemoryKeeper()
    keeper.on_step_end = lambda progress: sizes.append(progress.events)
    trainer.callbacks = [keeper]
    trainer.run()
    assert sizes[:3] == [64, 128, 192]


def test_intervals_must_be_numbers():
    with pytest.raises(ConfigError, match="checkpoint_seconds"):
        trainer_of(ListSource([]), checkpoint_seconds=float("nan"))


def test_it_reads_no_more_than_max_events():
    source = ListSource(events(rounds=5))
    assert trainer_of(source).run(max_events=100) is not None
    assert source.at == 100


def test_progress_has_the_figures_of_the_stream():
    seen, source = [], ListSource(events(rounds=3))
    keeper = MemoryKeeper()
    keeper.on_step_end = seen.append
    trainer_of(source, callbacks=[keeper], prequential=PrequentialRecall(n=3)).run()
    last = seen[-1]
    assert (last.events, last.lag, last.items, last.malformed) == (len(source.events), 0, 10, 0)
    assert 0 <= last.recall <= 1
    assert last.events_per_second > 0
    assert any(progress.m_step is not None for progress in seen)
    assert seen[0].recall is None


def test_progress_counts_item_changes_and_events_of_removed_items():
    seen, keeper = [], MemoryKeeper()
    keeper.on_step_end = seen.append
    rows = events(rounds=1)
    changes = [AddItem("new"), RemoveItem("new"), ("someone", "new"), ("another", "new")]
    trainer_of(ListSource([*rows, *changes]), callbacks=[keeper]).run()
    assert (seen[-1].item_changes, seen[-1].blocked) == (2, 2)


def test_a_fitted_model_is_continued():
    model = pathdex.DeepRetrieval(**SMALL).partial_fit(events())
    before = int(model.model_state.counts.sum())
    StreamTrainer(ListSource([(1, 99, 1000)]), model, options=OPTIONS).run()
    assert model.model_state.counts.sum() == before + LEAST_COUNT
    assert 99 in model.items


def test_an_empty_source_leaves_the_model_unfitted():
    assert not trainer_of(ListSource([])).run().is_fitted


@pytest.mark.parametrize("died_after", [1, 3])
def test_item_changes_count_exactly_once(died_after):
    records = events(rounds=3)
    records[100:100] = [AddItem("new"), RemoveItem(records[0][1])]
    records[150:150] = [RemoveItem("new"), AddItem("newer", (records[1][1],))]
    expected = trainer_of(ListSource(records))
    model = expected.run()
    assert "newer" in model.items
    assert "new" not in model.items
    assert records[0][1] not in model.items
    keeper = MemoryKeeper(died_after)
    with pytest.raises(InterruptedError):
        trainer_of(ListSource(records), keeper=keeper, callbacks=[keeper]).run()
    continued = trainer_of(ListSource(records), keeper=keeper)
    continued.run()
    assert final_bits(continued) == final_bits(expected)
    assert continued.online.state.counters == expected.online.state.counters


def test_without_its_last_item_the_published_model_stays_until_another_comes():
    keeper = MemoryKeeper()
    source = ListSource([("u", "a", 1.0), RemoveItem("a")])
    trainer = trainer_of(source, keeper=keeper, callbacks=[keeper])
    trainer.run()
    assert len(trainer.online.state.catalogue) == 0
    source.events += [Event("u", "b", 2.0)]
    again = trainer_of(source, keeper=keeper, callbacks=[keeper])
    model = again.run()
    assert [id for id, _ in model.recommend([], 5)] == ["b"]
