"""Events to state: histories, new and removed items, duplicates, lateness, and resuming to the same bits."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.config import Config
from pathdex.data.events import Event
from pathdex.training.loop import TrainingState
from pathdex.training.stream.options import StreamOptions
from pathdex.training.stream.state import StreamState
from tests.training.stream.test_learner import CONFIG


def stream(**options):
    return StreamState(CONFIG, StreamOptions(**options))


def history(state, user):
    return [state.catalogue.id(slot) for slot in state.catalogue.slots_of(state.histories.tokens(user))]


def test_an_event_adds_its_item_and_extends_the_history():
    state = stream()
    state.apply([Event("u", "a", 1.0), Event("u", "b", 2.0), Event("v", "a", 3.0)], {"line": 3})
    assert history(state, "u") == ["a", "b"]
    assert history(state, "v") == ["a"]
    assert len(state.catalogue) == state.counters.new_items == 2
    assert state.learner.counts.tolist() == [2, 1]
    assert state.position == {"line": 3}


def test_an_event_is_learned_from_with_the_items_before_it(monkeypatch):
    state, seen = stream(), []
    learn = state.learner.learn
    monkeypatch.setattr(state.learner, "learn", lambda samples: seen.append(samples) or learn(samples))
    state.apply([Event("u", item, float(time)) for time, item in enumerate("abc")])
    assert [list(one) for one in seen[0].histories] == [[], [0], [0, 1]]
    assert seen[0].targets.tolist() == [0, 1, 2]


def test_a_repeated_event_is_dropped_and_a_repeated_item_is_not():
    state = stream()
    state.apply([Event("u", "a", 1.0), Event("u", "a", 1.0), Event("u", "a", 2.0)])
    assert history(state, "u") == ["a", "a"]
    assert (state.counters.duplicates, state.counters.learned) == (1, 2)


def test_a_late_event_is_learned_from_and_does_not_change_the_order():
    state = stream()
    state.apply([Event("u", "a", 5.0), Event("u", "b", 4.0)])
    assert history(state, "u") == ["a"]
    assert (state.counters.late, state.counters.learned) == (1, 2)


def test_an_event_without_a_time_counts_as_the_latest():
    state = stream()
    state.apply([Event("u", "a", 5.0), Event("u", "b"), Event("u", "b")])
    assert history(state, "u") == ["a", "b", "b"]
    assert state.histories.last_time("u") == 5.0


def test_an_event_of_weight_zero_only_extends_the_history():
    state = stream()
    state.apply([Event("u", "a", 1.0, 0.0)])
    assert history(state, "u") == ["a"]
    assert state.counters.learned == 0
    assert state.learner.counts.tolist() == [0]


def test_an_item_is_admitted_at_its_nth_event():
    state = stream(admit_after=3)
    state.apply([Event("u", "a", float(time)) for time in range(2)])
    assert "a" not in state.catalogue
    assert history(state, "u") == []
    state.apply([Event("v", "a", 2.0)])
    assert "a" in state.catalogue
    assert (state.counters.waiting, state.counters.learned) == (2, 1)


def test_items_without_events_for_long_expire():
    state = stream(expire_after=10.0, forget_users_after=5.0, m_step_events=3)
    state.apply([Event("u", "old", 0.0), Event("w", "new", 1.0)])
    assert "old" in state.catalogue
    state.apply([Event("u", "new", 11.0)])
    assert "old" not in state.catalogue
    assert history(state, "u") == ["new"]
    assert history(state, "w") == []
    assert not state.learner.used[0]


def test_items_that_wait_survive_a_checkpoint():
    state = stream(admit_after=2)
    state.apply([Event("u", "a", 1.0)])
    restored = stream(admit_after=2)
    restored.load_state_dict(state.state_dict())
    restored.apply([Event("u", "a", 2.0)])
    assert "a" in restored.catalogue


def test_the_next_item_in_a_slot_is_not_in_old_histories():
    state = stream()
    state.apply([Event("u", "a", 0.0), Event("u", "b", 1.0)])
    assert state.remove_items(["a", "unknown"]) == [0]
    state.apply([Event("v", "c", 2.0)])
    assert state.catalogue.slot("c") == 0
    assert history(state, "u") == ["b"]
    assert state.learner.counts.tolist() == [1, 1]


def test_a_full_m_step_comes_after_so_many_events():
    state = stream(m_step_events=4)
    steps = [state.apply([Event("u", item, float(time)) for item in "ab"]) for time in range(4)]
    assert [step.m_step is not None for step in steps] == [False, False, True, False]
    assert state.learner.m_step is not None


def test_an_empty_batch_changes_only_the_position():
    state = stream()
    state.apply([], {"line": 1})
    assert state.position == {"line": 1}
    assert state.learner.steps == 0


def test_nodes_are_planned_for_the_expected_catalogue():
    small, large = (StreamState(Config(embedding_dim=4), StreamOptions(expected_items=n)) for n in (1000, 10**6))
    assert small.config.num_nodes < large.config.num_nodes
    assert small.config.next_items == 1


def bits(state):
    found = state.state_dict()
    return json.dumps(found.values), {name: np.array(one) for name, one in found.arrays.items()}


@given(st.integers(0, 2**32), st.integers(0, 5), st.booleans())
@settings(max_examples=8, deadline=None)
def test_a_restored_state_continues_to_the_same_bits(tmp_path_factory, seed, cut, on_disk):
    generator = np.random.default_rng(seed)
    events = [
        Event(f"u{generator.integers(5)}", int(generator.integers(12)), float(time + generator.integers(3)))
        for time in range(48)
    ]
    batches = [events[begin : begin + 8] for begin in range(0, 48, 8)]
    options = StreamOptions(m_step_events=16, admit_after=2, expire_after=20.0, forget_users_after=15.0)
    file = tmp_path_factory.mktemp("stream") / "histories.sqlite" if on_disk else None
    whole = StreamState(CONFIG, options)
    state = StreamState(CONFIG, options, histories=file)
    for number, batch in enumerate(batches):
        for one in (whole, state):
            one.apply(batch, {"batch": number})
        if number == cut:
            values, arrays = bits(state)
            if generator.random() < 0.5:
                state.committed()
            whole.committed()
            state.histories.close()
            state = StreamState(CONFIG, options, histories=file)
            state.load_state_dict(TrainingState(json.loads(values), arrays))
    if on_disk:
        users = [f"u{user}" for user in range(5)]
        assert [state.histories.tokens(user) for user in users] == [whole.histories.tokens(user) for user in users]
        return
    (values, arrays), (expected_values, expected) = bits(state), bits(whole)
    assert json.loads(values) == json.loads(expected_values)
    different = [name for name in expected if not np.array_equal(arrays[name], expected[name])]
    assert not [name for name in different if not name.startswith("histories.")]


def test_malformed_and_lost_events_are_part_of_the_checkpoint():
    state = stream()
    state.apply([Event("u", "a", 1.0)], {"line": 3}, malformed=2, lost=1)
    saved = state.state_dict()
    other = stream()
    other.load_state_dict(saved)
    assert (other.counters.malformed, other.counters.lost) == (2, 1)
    del saved.values["counters"]["malformed"], saved.values["counters"]["lost"]  # As in earlier releases.
    other.load_state_dict(saved)
    assert (other.counters.events, other.counters.malformed, other.counters.lost) == (1, 0, 0)


def test_wrong_options_are_rejected():
    with pytest.raises(Exception, match="m_step_events"):
        stream(m_step_events=0)


def test_replay_draws_the_histories_of_recent_users(monkeypatch):
    state, seen = stream(replay=2.0, batch_events=4), []
    learn = state.learner.learn
    monkeypatch.setattr(state.learner, "learn", lambda samples: seen.append(samples) or learn(samples))
    for start in (0, 4):
        state.apply([Event(f"u{start}", f"i{start + number}", float(start + number)) for number in range(3)])
    assert [list(one) for one in seen[0].replayed] == [[0, 1, 2]]
    assert sorted(list(one) for one in seen[1].replayed) == [[0, 1, 2], [3, 4, 5]]


def test_a_removed_item_is_not_replayed(monkeypatch):
    state, seen = stream(replay=4.0), []
    state.apply([Event("u", item, float(time)) for time, item in enumerate("abc")])
    state.remove_items(["b"])
    learn = state.learner.learn
    monkeypatch.setattr(state.learner, "learn", lambda samples: seen.append(samples) or learn(samples))
    state.apply([Event("v", "d", 9.0)])
    assert [list(one) for one in seen[0].replayed] == [[0, 2]]


def test_replay_changes_neither_counts_nor_scores_of_items_without_events():
    state = stream(replay=8.0)
    state.apply([Event("u", item, float(time)) for time, item in enumerate("abcd")])
    before = state.learner.counts.copy(), state.learner.table.scores.copy(), state.learner.rows.copy()
    state.apply([Event("v", "e", 9.0)])
    assert state.learner.counts[:4].tolist() == before[0].tolist()
    assert (state.learner.table.scores[:4] == before[1]).all()
    assert (state.learner.rows[:4] != before[2]).any()


def test_more_items_are_kept_for_replay_than_the_encoder_reads(monkeypatch):
    state, seen = stream(replay=4.0, replay_history=7), []
    learn = state.learner.learn
    monkeypatch.setattr(state.learner, "learn", lambda samples: seen.append(samples) or learn(samples))
    for time in range(12):
        state.apply([Event("u", str(time), float(time))])
    length = state.config.history_length
    assert length < 7 == len(state.histories.tokens("u"))
    assert len(seen[-1].histories[0]) == length
    windows = [(time, row) for time, samples in enumerate(seen) for row in samples.replayed]
    assert max(len(row) for _, row in windows) == length
    assert any(row[-1] < time for time, row in windows), "only the last items are replayed"
