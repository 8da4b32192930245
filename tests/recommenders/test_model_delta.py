"""Deltas by hand, and random ones there and back."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError, QueryError
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.model_delta import ModelDelta, apply_delta, diff_states
from tests.random_deltas import changed_model, random_delta
from tests.random_model import random_model

NO_CHANGE: dict[str, Any] = {
    "num_items": 10,
    "items": np.empty(0, np.int64),
    "rows": np.empty((0, 7), np.float32),
    "paths": np.empty((0, 2), np.int64),
    "counts": np.empty(0, np.int64),
}
ONE: dict[str, Any] = {
    **NO_CHANGE,
    "items": np.array([3]),
    "rows": np.ones((1, 7), np.float32),
    "paths": np.array([[0, 15]]),
    "counts": np.array([7]),
}

TWICE: dict[str, Any] = {
    "num_items": 12,
    "items": np.array([10, 11]),
    "rows": np.ones((2, 7), np.float32),
    "paths": np.array([[0, 15], [1, 2]]),
    "counts": np.array([7, 8]),
    "id_codes": np.array([10, 11]),
    "ids": Vocabulary(np.array([500, 500])),
}


@pytest.fixture
def model() -> DeepRetrieval:
    return random_model(10, neighbours=4)


def test_a_changed_item_has_its_new_row_paths_and_count(model: DeepRetrieval) -> None:
    after = changed_model(model, ModelDelta(**ONE))
    assert after.item_paths(103) == [(0, 0), (3, 3)]
    assert 103 in after.path_items([0, 0])
    assert after.model_state.counts[3] == 7
    assert (after.model_state.rows[3] == 1).all()
    assert model.model_state.counts[3] != 7  # The state before is unchanged.


def test_a_removed_item_disappears(model: DeepRetrieval) -> None:
    path = model.item_paths(103)[0]
    after = changed_model(model, ModelDelta(**NO_CHANGE, removed=np.array([3])))
    assert 103 not in after.items
    assert 103 not in after.path_items(path)
    for answer in (after.recommend([100], 10), after.similar_items(100, 10), after.recommend([], 10, allow=[103])):
        assert 103 not in [item for item, _ in answer]
    assert len(after.recommend([], 10)) == 9
    with pytest.raises(QueryError, match="is not in the catalogue of 9 items"):
        after.explain([100], 103)
    assert after.health().num_items == 9


def test_a_later_item_takes_its_place(model: DeepRetrieval) -> None:
    without = changed_model(model, ModelDelta(**NO_CHANGE, removed=np.array([3])))
    after = changed_model(without, ModelDelta(**ONE, id_codes=np.array([3]), ids=Vocabulary(np.array([500]))))
    assert after.items.code(500) == 3
    assert 103 not in after.items
    assert after.items.num_ids == len(after.items) == 10
    assert after.item_paths(500) == [(0, 0), (3, 3)]
    near = after.model_state.neighbours
    assert near is not None
    assert 3 not in near.items
    assert near.offsets[3] == near.offsets[4]


def test_an_item_without_paths_is_known_but_not_found(model: DeepRetrieval) -> None:
    new = {**ONE, "num_items": 11, "items": np.array([10]), "paths": np.array([[-1, -1]])}
    after = changed_model(model, ModelDelta(**new, id_codes=np.array([10]), ids=Vocabulary(np.array([500]))))
    assert after.item_paths(500) == []
    assert after.similar_items(500) == []
    assert 500 not in [item for item, _ in after.recommend([500, 100], 11, exclude_seen=False)]
    assert after.recommend([100], 5, allow=[500]) == []
    assert after.explain([100], 500).paths == ()
    assert str(after.why_not([100], 500)).startswith("500 is on no path yet")
    assert after.health().unreachable_items == 1


def test_all_items_can_be_removed(model: DeepRetrieval) -> None:
    after = changed_model(model, ModelDelta(**NO_CHANGE, removed=np.arange(10)))
    assert after.items.num_ids == 0
    assert after.recommend([]) == []
    assert after.warmup().recommend([], 3, beam=2) == []


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_the_difference_of_two_states_turns_one_into_the_other(seed: int, neighbours: bool, weights: bool) -> None:
    random = np.random.default_rng(seed)
    first = random_model(12, seed=seed % 7, neighbours=3 * neighbours)
    first = changed_model(first, random_delta(first, random))
    after = changed_model(first, random_delta(first, random, weights=weights, neighbours=0.0))
    delta = diff_states(first.model_state, after.model_state, first.items, after.items)
    again = ModelDelta.from_state(delta.state())
    result = changed_model(first, again)
    assert result.items.arrays().keys() == after.items.arrays().keys()
    assert result.items.ids(range(len(after.items))) == after.items.ids(range(len(after.items)))
    assert result.config == after.config
    for name, array in after.get_state().arrays.items():
        np.testing.assert_array_equal(result.get_state().arrays[name], array)
    for name, array in after.get_state().weights.items():
        np.testing.assert_array_equal(result.get_state().weights[name], array)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": np.array([3, 2])}, "must be ascending and distinct"),
        ({"removed": np.array([3])}, "must not be among the changed items"),
        ({"id_codes": np.array([4]), "ids": Vocabulary(np.array([9]))}, "must be among the changed items"),
        ({"num_items": 3}, "must exceed the code of every item"),
        ({"counts": np.empty(0, np.int64)}, "must be one per changed item"),
        ({"settings": {"num_nodes": 9}}, "must not change the shapes of arrays"),
        ({"paths": np.array([[0, -1]])}, "has 1 of 2 paths, must have all or none"),
    ],
)
def test_an_impossible_delta_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ModelDelta(**{**ONE, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_items": 9}, "cannot shrink"),
        ({"num_items": 12}, "every item past the old end of the table must have an id"),
        ({"rows": np.ones((1, 3), np.float32)}, "the item table has 7; write a new base"),
        ({"paths": np.array([[0, 1, 2]])}, "the model has 2; write a new base"),
        ({"weights": {"start": np.ones(3)}}, "names or shapes differ"),
        ({"id_codes": np.array([3]), "ids": Vocabulary(np.array([105]))}, "one belongs to another item"),
        ({"id_codes": np.array([3]), "ids": Vocabulary(["x"])}, "the catalogue has integer ids, and 'x' is text"),
        ({**TWICE, "ids": Vocabulary(np.array([500, 103]))}, "one belongs to another item"),
        (TWICE, "one occurs twice; give every item its own id"),
    ],
)
def test_a_delta_of_another_model_is_refused(model: DeepRetrieval, change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ModelDelta(**{**ONE, **change}).check(model.model_state, model.items)


def test_the_repr_is_short() -> None:
    assert repr(ModelDelta(**ONE)) == "ModelDelta(10 items; 1 changed, 0 new ids, 0 removed)"


def test_settings_change_the_configuration(model: DeepRetrieval) -> None:
    delta = dataclasses.replace(ModelDelta(**NO_CHANGE), settings={"penalty": 0.5})
    assert apply_delta(model.model_state, delta).config.penalty == 0.5
