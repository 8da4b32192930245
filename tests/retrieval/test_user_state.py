"""States that are continued item by item against whole histories."""

import numpy as np
import pytest

from pathdex.retrieval import user_state as module
from pathdex.retrieval.user_state import weights_under
from tests.random_model import random_model

ITEMS = 30


@pytest.mark.parametrize("encoder", ["gru", "pooled", "attention"])
def test_an_advanced_state_equals_encoding_the_whole_history(encoder: str) -> None:
    model = random_model(ITEMS, encoder=encoder)
    state = model.state()
    for length in range(1, 9):  # Beyond the five items that the encoder reads.
        before = state.vector.copy()
        state_after = model.advance(state, 100 + 3 * length)
        np.testing.assert_array_equal(state.vector, before)
        state = state_after
        history = [100 + 3 * step for step in range(1, length + 1)]
        np.testing.assert_allclose(state.vector, model.state(history).vector, rtol=1e-4, atol=1e-5)
        answer, whole = model.recommend_next(state, 5, deny=[129]), model.recommend(history, 5, deny=[129])
        assert [item for item, _ in answer] == [item for item, _ in whole]


def test_an_encoder_without_a_compiled_version_runs_in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = random_model(ITEMS).recommend([[101, 104], []], 5)
    monkeypatch.delitem(module.ENCODERS, "gru")
    model = random_model(ITEMS)
    found = model.recommend([[101, 104], []], 5)
    assert [[item for item, _ in one] for one in found] == [[item for item, _ in one] for one in compiled]
    state = model.advance(model.advance(model.state(), 101), 104)
    np.testing.assert_allclose(state.vector, model.state([101, 104]).vector, rtol=1e-5)


def test_weights_are_selected_by_their_prefix() -> None:
    one = np.zeros(1)
    assert weights_under("encoder.", {"encoder.last.weight": one, "structure.user.bias": one}) == {"last.weight": one}
