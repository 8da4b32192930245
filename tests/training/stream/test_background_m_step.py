"""A full M-step beside the stream: the same result as in the foreground, whenever it is taken."""

import numpy as np
import pytest

from pathdex.config import Config
from pathdex.data.events import Event
from pathdex.index.online_assignment import PathSizes
from pathdex.index.scores import ScoreTable
from pathdex.training.loop import TrainingState
from pathdex.training.m_step import m_step
from pathdex.training.stream.background_m_step import BackgroundMStep
from pathdex.training.stream.options import StreamOptions
from pathdex.training.stream.state import StreamState

CONFIG = Config(embedding_dim=8, history_length=4, num_nodes=4, depth=2, path_size=4, structure_hidden=8)
OPTIONS = {"path_size": 4.0, "last_penalty": None, "seed": 1}


def problem():
    random = np.random.default_rng(0)
    codes = np.stack([random.permutation(16)[:6] for _ in range(20)])
    table = ScoreTable(codes, np.sort(random.random((20, 6), np.float32))[:, ::-1].copy())
    return table, random.integers(1, 9, 20), codes[:, :3].copy()


def test_it_gives_the_result_of_the_foreground_for_the_chosen_slots():
    table, counts, paths = problem()
    slots = np.array([1, 3, 4, 10])
    step = BackgroundMStep.begin(slots, table, counts, paths, CONFIG, **OPTIONS)
    table.scores[:] = 0  # The stream goes on.
    found = step.result()
    table, counts, paths = problem()
    rows = ScoreTable(table.codes[slots], table.scores[slots])
    expected = m_step(rows, counts[slots], paths[slots], CONFIG, **OPTIONS)
    assert np.array_equal(found.paths, expected.paths)
    assert (found.penalty, found.figures) == (expected.penalty, expected.figures)


def test_its_result_survives_a_checkpoint():
    step = BackgroundMStep.begin(np.arange(20), *problem(), CONFIG, **OPTIONS)
    state = step.state_dict()
    again = BackgroundMStep.from_state_dict(state.values, state.arrays)
    assert np.array_equal(again.slots, step.slots)
    assert np.array_equal(again.result().paths, step.result().paths)
    assert again.result().figures == step.result().figures


def test_a_failure_is_raised_where_the_result_is_taken():
    table, counts, paths = problem()
    step = BackgroundMStep.begin(np.arange(20), table, counts, paths, CONFIG, **{**OPTIONS, "path_size": -1.0})
    with pytest.raises(Exception, match="path_size"):
        step.result()


def events(first, end):
    return [Event(f"u{number % 7}", number * 5 % 13, float(number)) for number in range(first, end)]


def learned(number=40):
    state = StreamState(CONFIG, StreamOptions(m_step_events=1000))
    state.apply(events(0, number))
    return state


def test_items_that_were_placed_meanwhile_stay():
    state = learned()
    learner = state.learner
    learner.begin_m_step()
    assert learner.m_step is not None
    wanted = learner.m_step.result().paths
    state.apply([Event("u0", 3, 99.0)])
    state.remove_items([5])
    state.add_item(100)
    kept = {slot: learner.paths[slot].tolist() for slot in map(state.catalogue.slot, (3, 100))}
    assert state.catalogue.slot(100) < 13
    figures = learner.finish_m_step()
    assert figures is not None
    assert learner.m_step is None
    for slot in range(13):
        expected = kept[slot] if slot in kept else wanted[slot].tolist()
        assert sorted(learner.paths[slot].tolist()) == sorted(expected)
    for found, expected in zip(learner.sizes.items(), PathSizes(learner.paths).items(), strict=True):
        assert found.tolist() == expected.tolist()
    assert learner.finish_m_step() is None


def test_a_checkpoint_while_it_runs_continues_to_the_same_bits():
    state, copy = learned(), StreamState(CONFIG, StreamOptions(m_step_events=1000))
    state.learner.begin_m_step()
    state.apply(events(40, 50))
    saved = state.state_dict()
    state.committed()
    copy.load_state_dict(TrainingState(dict(saved.values), {name: np.array(one) for name, one in saved.arrays.items()}))
    for one in (state, copy):
        one.apply(events(50, 60))
        one.learner.finish_m_step()
        one.apply(events(60, 70))
    first, second = (one.state_dict() for one in (state, copy))
    assert first.values == second.values
    for name, array in first.arrays.items():
        assert np.array_equal(array, second.arrays[name]), name
