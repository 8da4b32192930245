"""What `tests/recommenders/test_live_model.py` does not see: a prepared change is invisible until it is committed."""

from __future__ import annotations

import numpy as np

from pathdex.recommenders.model_state import TorchEncoder
from pathdex.retrieval.live_index import ItemChanges, LiveIndex, removed_rows
from tests.random_model import random_model


def test_a_change_is_visible_once_it_is_committed() -> None:
    model = random_model(20)
    state = model.model_state
    index = LiveIndex(model.retriever, state.rows, state.log_shares)
    rows, paths, counts = removed_rows(np.array([3]), state.rows.shape[1], state.paths.shape[1])
    change = ItemChanges(20, np.array([3]), rows, paths, counts, np.array([3]))
    own = int(state.paths[3, 0])
    before = index.retriever.postings.items_on(own).tolist()
    prepared = index.prepare(change, model.config, state.weights, TorchEncoder(state), new_weights=False)
    assert 3 in before
    assert index.retriever.postings.items_on(own).tolist() == before
    assert (index.arrays()[0] == state.rows).all()
    after = index.commit(prepared)
    assert after is index.retriever
    assert after.postings.items_on(own).tolist() == [item for item in before if item != 3]
    assert (index.arrays()[1][3] == -1).all()
    assert (state.paths[3] != -1).all()
