"""Stored deltas are checked before they change a live model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathdex.errors import BundleError, DataError
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.live_reader import LiveReader, load_live
from pathdex.recommenders.model_delta import ModelDelta
from tests.bundle_contract import broken_arrays, with_value
from tests.random_deltas import random_delta
from tests.random_model import random_model


@pytest.fixture
def stored() -> EstimatorState:
    return random_delta(random_model(12), np.random.default_rng(3), unplaced=0, weights=True).state()


def with_array(stored: EstimatorState, name: str, array: Any) -> EstimatorState:
    return EstimatorState(stored.settings, {**stored.arrays, name: array}, stored.weights)


def refused(state: EstimatorState) -> str:
    """The error about a delta; the model answers as before."""
    model = LiveModel(random_model(12))
    before = model.recommend([100], 12)
    with pytest.raises(DataError) as caught:
        model.apply(ModelDelta.from_state(state))
    assert model.recommend([100], 12) == before
    return str(caught.value)


def test_a_delta_that_is_written_is_valid(stored: EstimatorState) -> None:
    LiveModel(random_model(12)).apply(ModelDelta.from_state(stored))


def test_a_wrong_array_is_named(stored: EstimatorState) -> None:
    for name, array in stored.arrays.items():
        for kind, wrong in broken_arrays(array).items():
            # A wrong length of the codes makes all others wrong.
            assert name.split(".")[0] in refused(with_array(stored, name, wrong)) or kind == "length"


def test_numbers_out_of_range_are_named(stored: EstimatorState) -> None:
    for name, low in (("items", -1), ("paths", -2), ("counts", -1), ("id_codes", -1), ("removed", -1)):
        for value in (low, 10**17, 2**63 - 1):
            assert name in refused(with_array(stored, name, with_value(stored.arrays[name], value)))
    assert "paths: holds 16, must hold no value above 15" in refused(
        with_array(stored, "paths", with_value(stored.arrays["paths"], 16))
    )


def test_the_paths_of_an_item_are_distinct(stored: EstimatorState) -> None:
    paths = stored.arrays["paths"].copy()
    paths[0, 1] = paths[0, 0]
    assert "paths: an item has a path twice" in refused(with_array(stored, "paths", paths))


def test_a_wrong_weight_is_named(stored: EstimatorState) -> None:
    for name, weight in stored.weights.items():
        for wrong in (weight[:-1], with_value(weight, np.nan), weight.astype(np.float64), with_value(weight, 1e9)):
            weights = {**stored.weights, name: wrong}
            assert "weight" in refused(EstimatorState(stored.settings, stored.arrays, weights))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"num_items": 12},
        {"num_items": "12", "settings": {}},
        {"num_items": True, "settings": {}},
        {"num_items": 2**40, "settings": {}},
        {"num_items": 2**31 - 1, "settings": {}},
        {"num_items": -1, "settings": {}},
        {"num_items": 14, "settings": []},
        {"num_items": 14, "settings": {"depth": 2}},
        {"num_items": 14, "settings": {"nothing": 2}},
        {"num_items": 14, "settings": {"path_weight": "high"}},
        {"num_items": 14, "settings": {}, "more": 1},
    ],
)
def test_wrong_settings_are_refused(stored: EstimatorState, settings: Any) -> None:
    refused(EstimatorState(settings, stored.arrays, stored.weights))


def test_missing_and_unknown_arrays_are_named(stored: EstimatorState) -> None:
    for name in stored.arrays:
        rest = {one: array for one, array in stored.arrays.items() if one != name}
        assert "is missing" in refused(EstimatorState(stored.settings, rest, stored.weights))
    assert "more: is not" in refused(with_array(stored, "more", np.zeros(1)))


def test_the_number_of_ids_is_that_of_their_codes(stored: EstimatorState) -> None:
    more = np.append(stored.arrays["ids.ids"], 10**6)
    assert "ids: has 3 ids, must have 2" in refused(with_array(stored, "ids.ids", more))


@pytest.mark.parametrize("by_itself", [True, False])
def test_a_reader_leaves_a_bad_delta_out(tmp_path: Path, stored: EstimatorState, by_itself: bool) -> None:
    paths = with_value(stored.arrays["paths"], 16)
    wrong = {"paths": paths.astype(np.int32) if by_itself else paths}
    with LivePublisher.create(tmp_path / "live", random_model(12)) as publisher:
        reader = LiveReader(tmp_path / "live")
        model = reader.load()
        before = model.recommend([100], 12)
        publisher._writer.append(stored.settings, {**stored.arrays, **wrong}, {})
        if by_itself:
            with pytest.warns(UserWarning, match="delta 1 is damaged: paths: .*; it is left out until"):
                assert reader.update(model) == 0
        else:
            assert reader.update(model) is None
        assert model.recommend([100], 12) == before
        with pytest.raises(BundleError if by_itself else DataError, match="paths"):
            publisher.compact()
        with pytest.warns(UserWarning, match="the last 1 publishes are left out"):
            assert load_live(tmp_path / "live").recommend([100], 12) == before
