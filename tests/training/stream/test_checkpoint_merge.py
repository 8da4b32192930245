"""A full checkpoint and later changes give the state of the last checkpoint, bit for bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.config import Config
from pathdex.data.events import Event
from pathdex.data.item_changes import AddItem, RemoveItem
from pathdex.training.loop import TrainingState
from pathdex.training.stream.checkpoint_merge import merge_changes
from pathdex.training.stream.options import StreamOptions
from pathdex.training.stream.state import StreamState

CONFIG = Config(embedding_dim=8, history_length=4, num_nodes=4, depth=2, path_size=4, structure_hidden=8)
OPTIONS = StreamOptions(batch_events=8, m_step_events=40, admit_after=1, replay_events=20)


def copied(state):
    return TrainingState(dict(state.values), {name: np.array(one) for name, one in state.arrays.items()})


def happen(state, random):
    """A batch of events, or new, described and removed items."""
    kind = random.integers(6)
    known = [state.catalogue.id(slot) for slot in range(state.catalogue.num_slots)]
    known = [one for one in known if one is not None]
    if kind == 0 and len(known) > 2:
        state.remove_items(random.choice(known, 2, replace=False).tolist())
    elif kind == 1:
        state.add_item(f"new{random.integers(10)}", ())
    elif kind == 2 and known:
        state.apply([AddItem(one, (), {"g": "ab"[random.integers(2)]}) for one in (f"d{random.integers(9)}", known[0])])
    elif kind == 3 and len(known) > 1:
        state.apply([RemoveItem(random.choice(known))])
    else:
        weights = random.choice([0.0, 1.0], 8, p=[0.2, 0.8])
        users, items = random.integers(0, 5, 8), random.integers(0, 12, 8)
        rows = zip(users.tolist(), items.tolist(), weights.tolist(), strict=True)
        state.apply([Event(user, item, state.clock + 1, weight) for user, item, weight in rows])


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), steps=st.lists(st.integers(0, 4), min_size=0, max_size=4))
def test_the_result_is_the_state_of_the_last_checkpoint(seed, steps):
    random, state = np.random.default_rng(seed), StreamState(CONFIG, OPTIONS)
    happen(state, random)
    full, changes = copied(state.state_dict()), []
    state.committed()
    for number in steps:
        for _ in range(number):
            happen(state, random)
        expected = copied(state.state_dict())
        changes.append(copied(state.changes_dict()))
        state.committed()
    found = merge_changes(full, changes)
    expected = expected if steps else full
    assert found.values == expected.values
    assert found.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        assert np.array_equal(found.arrays[name], array), name
        assert found.arrays[name].dtype == array.dtype, name
