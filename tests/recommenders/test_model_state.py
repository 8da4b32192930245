"""The learned arrays go into a bundle and come back; times do not."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.model_state import ModelState
from pathdex.storage.bundle import Bundle
from tests.random_deltas import random_delta
from tests.random_model import random_model


def test_arrays_come_back_and_postings_are_rebuilt() -> None:
    state = random_model(neighbours=3).model_state
    again = ModelState.from_state(state.state())
    for name in ("rows", "paths", "counts", "log_shares"):
        np.testing.assert_array_equal(getattr(again, name), getattr(state, name))
    assert again.config == state.config
    np.testing.assert_array_equal(again.postings.items, state.postings.items)
    assert again.neighbours is not None
    for first, second in zip(again.neighbours, state.neighbours or (), strict=True):
        np.testing.assert_array_equal(first, second)


def test_a_model_without_neighbours_stores_none() -> None:
    state = random_model().model_state
    assert not [name for name in state.state().arrays if name.startswith("neighbours")]
    assert ModelState.from_state(state.state()).neighbours is None


def test_times_are_not_stored_so_that_equal_trainings_give_equal_bundles() -> None:
    record = {"phase": "structure", "number": 1, "structure": 0.5, "seconds": 3.2, "m_step_seconds": 1.0}
    state = dataclasses.replace(random_model().model_state, records=[record])
    assert state.state().settings["records"] == [{"phase": "structure", "number": 1, "structure": 0.5}]


def test_the_network_has_the_weights_of_the_state() -> None:
    state = random_model().model_state
    exported = state.network().export()
    for name, value in state.all_weights().items():
        np.testing.assert_array_equal(exported[name], value, err_msg=name)


def test_a_budget_follows_fewer_paths_where_neighbours_bring_candidates() -> None:
    def beam(**parameters: Any) -> int:
        state = random_model(**parameters).model_state
        size = 30 * 2 / len(state.postings)
        assert size > 1
        return round(state.beam_for(1000) * size / 20)

    # In per cent of twice the budget.
    assert beam() == pytest.approx(100, abs=1)
    assert beam(neighbours=8, neighbour_share=0.4) == pytest.approx(60, abs=1)
    assert beam(neighbours=8, neighbour_share=1.0) == pytest.approx(10, abs=1)
    assert beam(neighbours=0, neighbour_share=1.0) == pytest.approx(100, abs=1)


class TestRemovedItems:
    """A bundle must not hold removed items where a query would find them."""

    @pytest.fixture
    def bundle(self) -> Bundle:
        model = LiveModel(random_model(12, neighbours=3))
        model.apply(random_delta(model, np.random.default_rng(0), new=0, removed=2))
        return model.to_bundle()

    def test_a_live_model_writes_none(self, bundle: Bundle) -> None:
        assert len(bundle.arrays["items.removed"]) == 2
        assert DeepRetrieval.bundle_problems(bundle) == []

    def test_on_paths(self, bundle: Bundle) -> None:
        placed = np.flatnonzero(bundle.arrays["paths"][:, 0] >= 0)[:1]
        removed = np.union1d(bundle.arrays["items.removed"], placed)
        changed = dataclasses.replace(bundle, arrays={**bundle.arrays, "items.removed": removed})
        rule = "paths: a removed item must have none; fill its row with -1"
        assert DeepRetrieval.bundle_problems(changed) == [rule]

    def test_among_neighbours(self, bundle: Bundle) -> None:
        near = bundle.arrays["neighbours.items"].copy()
        near[0] = bundle.arrays["items.removed"][0]
        changed = dataclasses.replace(bundle, arrays={**bundle.arrays, "neighbours.items": near})
        assert DeepRetrieval.bundle_problems(changed) == ["neighbours.items: must hold no removed item"]

    def test_exhaustive_search_takes_no_model_with_removed_items(self, bundle: Bundle) -> None:
        settings = {"model": "deep-retrieval", "settings": bundle.settings}
        (problem,) = BruteForce.bundle_problems(dataclasses.replace(bundle, estimator="brute-force", settings=settings))
        assert problem.startswith("items.removed: must be empty")
