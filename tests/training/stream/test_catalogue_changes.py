"""Item changes among the events of a stream."""

import numpy as np
import pytest

from pathdex.data.events import Event
from pathdex.data.item_changes import AddItem, RemoveItem
from pathdex.training.loop import TrainingState
from pathdex.training.stream import catalogue_changes
from tests.training.stream.test_state import history, stream


def copy_of(state):
    saved = state.state_dict()
    again = stream()
    arrays = {name: np.array(one) for name, one in saved.arrays.items()}
    again.load_state_dict(TrainingState(dict(saved.values), arrays))
    return again


def events(*items, user="u"):
    return [Event(user, item, float(time)) for time, item in enumerate(items, start=1)]


def test_an_added_item_is_known_before_its_first_event():
    state = stream(admit_after=3)
    state.apply([AddItem("x"), AddItem(7), AddItem("x"), AddItem("7")])
    assert len(state.catalogue) == state.counters.new_items == 2
    assert (state.counters.item_changes, state.counters.events, state.counters.learned) == (4, 0, 0)
    state.apply([Event("u", "x", 1.0)])
    assert history(state, "u") == ["x"]


def test_an_added_item_starts_near_those_it_is_like():
    state = stream()
    state.apply(events("a", "b"))
    state.apply([AddItem("x", ("unknown", "a"))])
    a, x = state.catalogue.slot("a"), state.catalogue.slot("x")
    assert state.learner.paths[x].tolist() == state.learner.paths[a].tolist()


def test_adding_a_known_item_changes_nothing():
    state = stream()
    state.apply(events("a", "b"))
    before = {name: one.tobytes() for name, one in state.state_dict().arrays.items()}
    state.apply([AddItem("a", ("b",))])
    assert {name: one.tobytes() for name, one in state.state_dict().arrays.items()} == before


def test_a_removed_item_is_gone_and_its_slot_is_used_again():
    state = stream()
    state.apply([*events("a", "b", "c"), RemoveItem("b"), AddItem("x")])
    assert "b" not in state.catalogue
    assert state.catalogue.slot("x") == 1
    assert history(state, "u") == ["a", "c"]
    assert (state.counters.removed_items, state.counters.unknown_removals) == (1, 0)


def test_nothing_of_a_removed_item_is_learned(monkeypatch):
    state, seen = stream(), []
    learn = state.learner.learn
    monkeypatch.setattr(state.learner, "learn", lambda samples: seen.append(samples) or learn(samples))
    state.apply([*events("a", "b", "c"), RemoveItem("b"), AddItem("x"), Event("v", "x", 9.0)])
    assert [list(one) for one in seen[0].histories] == [[], [0], []]
    assert seen[0].targets.tolist() == [0, 2, 1]
    assert state.counters.learned == 3
    assert state.learner.counts.tolist() == [1, 1, 1]


def test_removing_an_unknown_item_is_counted():
    state = stream()
    state.apply([*events("a"), RemoveItem("b"), RemoveItem("b")])
    assert (state.counters.unknown_removals, state.counters.removed_items, len(state.catalogue)) == (2, 0, 1)


def test_an_event_does_not_bring_a_removed_item_back_but_adding_it_does():
    state = stream()
    state.apply([*events("a", "b"), RemoveItem("b"), Event("v", "b", 5.0)])
    state.apply([Event("v", "b", 6.0), Event("v", "a", 7.0)])
    assert "b" not in state.catalogue
    assert history(state, "v") == ["a"]
    assert state.counters.blocked == 2
    state.apply([AddItem("b"), Event("v", "b", 8.0)])
    assert history(state, "v") == ["a", "b"]


def test_an_item_that_is_removed_before_it_comes_stays_away():
    state = stream()
    state.apply([RemoveItem("b"), *events("a", "b")])
    assert "b" not in state.catalogue


def test_the_last_item_can_be_removed():
    state = stream()
    state.apply([*events("a"), RemoveItem("a")])
    assert len(state.catalogue) == 0
    state.apply(events("b", "c", user="v"))
    assert sorted(state.catalogue.id(slot) for slot in range(2)) == ["b", "c"]
    assert state.counters.learned == 2


def test_removals_survive_a_checkpoint():
    state = stream()
    state.apply([*events("a", "b"), RemoveItem("b"), RemoveItem("\0 ä")])
    again = copy_of(state)
    again.apply([Event("v", "b", 5.0), Event("v", "\0 ä", 5.0), Event("v", "a", 6.0)])
    assert len(again.catalogue) == 1
    assert again.counters.blocked == 2


def test_the_oldest_removals_are_forgotten(monkeypatch):
    monkeypatch.setattr(catalogue_changes, "REMEMBERED", 2)
    state = stream()
    state.apply([RemoveItem("a"), RemoveItem("b"), RemoveItem("a"), RemoveItem("c"), *events("a", "b", "c")])
    assert [one for one in "abc" if one in state.catalogue] == ["b"]


@pytest.mark.parametrize("cut", [1, 3, 4, 6])
def test_a_checkpoint_between_changes_gives_the_same_bits(cut):
    records = [*events("a", "b", "c"), RemoveItem("b"), AddItem("x", ("a",)), *events("x", "b", "c", user="v")]
    whole, first = stream(), stream()
    for part in (records[:cut], records[cut:]):
        whole.apply(part)
    first.apply(records[:cut])
    resumed = copy_of(first)
    resumed.apply(records[cut:])
    expected, found = whole.state_dict(), resumed.state_dict()
    assert found.values["counters"] == expected.values["counters"]
    for name, array in expected.arrays.items():
        if not name.startswith("histories."):
            assert found.arrays[name].tobytes() == array.tobytes(), name


def nearest(state, item, others):
    """The item among others whose vector is nearest."""
    rows = state.learner.rows[:, :-1]
    distances = [np.linalg.norm(rows[state.catalogue.slot(one)] - rows[state.catalogue.slot(item)]) for one in others]
    return others[int(np.argmin(distances))]


def test_a_described_item_starts_near_those_with_the_same_values():
    state = stream()
    state.apply([AddItem(item, (), {"genre": genre}) for item, genre in zip("abcd", "xxyz", strict=True)])
    assert state.counters.new_items == 4
    state.apply([AddItem("new", (), {"genre": "y|unknown"}), AddItem("named", ("d",), {"genre": "y"})])
    assert nearest(state, "new", "abcd") == "c"
    assert nearest(state, "named", "abcd") == "d"


def test_items_of_the_table_start_by_their_row_at_their_first_event():
    state = stream()
    state.apply(events("a", "b", "c"))
    state.use_table({"a": ("g=x",), "b": ("g=y",), "new": ("g=y",), "other": ("g=z",)})
    state.add_item("new", [state.catalogue.slot("c")])
    state.add_item("other", [state.catalogue.slot("c")])
    assert nearest(state, "new", "abc") == "b"
    assert nearest(state, "other", "abc") == "c"


def test_attributes_survive_a_checkpoint_and_leave_with_their_item():
    state = stream()
    state.apply([AddItem("a", (), {"g": "x"}), AddItem("b", (), {"g": "y"}), AddItem("c", (), {"g": "y"})])
    again = copy_of(state)
    for one in (state, again):
        one.apply([RemoveItem("b"), AddItem("new", (), {"g": "y"})])
        new, c = (one.learner.paths[one.catalogue.slot(item)].tolist() for item in ("new", "c"))
        assert new == c
    assert state.learner.rows.tobytes() == again.learner.rows.tobytes()
    assert len(again.attributes) == 3


def test_a_table_describes_the_items_of_a_checkpoint_that_has_no_attributes():
    state = stream()
    state.apply(events("a", "b"))
    saved = state.state_dict()
    arrays = {name: np.array(one) for name, one in saved.arrays.items() if not name.startswith("attributes.")}
    again = stream()
    again.use_table({"a": ("g=x",)})
    again.load_state_dict(TrainingState(dict(saved.values), arrays))
    assert len(again.attributes) == 1
