"""The loop over an event source: batches, checkpoints, publishing, stopping and resuming."""

import numpy as np
import pytest

import pathdex
from pathdex.errors import ConfigError
from pathdex.recommenders.prequential import PrequentialRecall
from pathdex.recommenders.stream_trainer import StreamTrainer
from pathdex.training.loop import TrainingState
from pathdex.training.stream.options import StreamOptions
from tests.recommenders.stream_source import ListSource
from tests.recommenders.test_online import SMALL, events

OPTIONS = StreamOptions(batch_events=64, m_step_events=200)


class MemoryKeeper:
    """Keeps checkpoints in memory; can fail like a process that dies."""

    histories = None

    def __init__(self, die_after=None):
        self.saved, self.published, self.die_after, self.steps = None, [], die_after, 0

    def restore(self, online):
        if self.saved is not None:
            online.state.load_state_dict(self.saved)
        return self.saved is not None

    def checkpoint(self, online):
        state = online.state.state_dict()
        self.saved = TrainingState(dict(state.values), {name: np.array(one) for name, one in state.arrays.items()})
        online.state.committed()

    def publish(self, model):
        self.published.append(len(model.items))

    def on_step_end(self, progress):
        self.steps += 1
        if self.steps == self.die_after:
            raise InterruptedError

    def on_publish(self, model):
        pass


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
    assert keeper.published == [10]


def test_an_idle_stream_publishes_and_keeps_its_last_events():
    source, keeper = ListSource(events(rounds=1), endless=True), MemoryKeeper()
    trainer = trainer_of(source, keeper=keeper, batch_seconds=0.01, publish_seconds=0.05, checkpoint_seconds=0.05)
    idle = source.read

    def read(max_events, timeout):
        if source.at == len(source.events) and keeper.published and keeper.saved is not None:
            trainer.stop()
        return idle(max_events, timeout)

    source.read = read
    keeper.publish = lambda model: keeper.published.append(int(model.model_state.counts.sum()))
    trainer.run()
    assert keeper.published[-1] == len(source.events)
    assert keeper.saved.values["position"]["at"] == len(source.events)


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


def test_a_fitted_model_is_continued():
    model = pathdex.DeepRetrieval(**SMALL).partial_fit(events())
    before = int(model.model_state.counts.sum())
    StreamTrainer(ListSource([(1, 99, 1000)]), model, options=OPTIONS).run()
    assert model.model_state.counts.sum() == before + 1
    assert 99 in model.items


def test_an_empty_source_leaves_the_model_unfitted():
    assert not trainer_of(ListSource([])).run().is_fitted
