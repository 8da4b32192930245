"""Checks of bundles that all estimators share. `tests/bundle_contract.py` tests them through every estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pathdex.errors import ConfigError
from pathdex.recommenders.bundle_checks import bundle_problems, check_names, check_object, split_arrays
from pathdex.storage.array_spec import weight_spec
from pathdex.storage.bundle import Bundle
from pathdex.storage.bundle_rules import BundleRules

IDS = np.array([4, 8])


def rules(settings: Any, num_items: int) -> BundleRules:
    check_names("settings", settings, ["size"])
    return BundleRules({"x": weight_spec(num_items, settings["size"])})


def test_the_rules_follow_settings_and_catalogue() -> None:
    good = Bundle("fake", {"size": 3}, {"items.ids": IDS, "x": np.zeros((2, 3), np.float32)})
    assert bundle_problems(good, rules) == []
    wrong = Bundle("fake", {"size": 4}, good.arrays)
    assert bundle_problems(wrong, rules) == ["x: has shape (2, 3), must have shape (2, 4)"]


def test_ids_come_first_and_settings_second() -> None:
    twice = Bundle("fake", {}, {"items.ids": np.array([4, 4]), "x": np.zeros(1)})
    assert bundle_problems(twice, rules) == ["items.ids: one occurs twice, must be distinct"]
    assert bundle_problems(twice, rules, values=False) == ["settings: settings: 'size' is missing"]


def test_names_are_exact() -> None:
    check_names("settings", {"a": 1}, ["a"])
    with pytest.raises(
        ConfigError, match=r"(?s)settings: 'sizes' is missing.*settings: 'size' is unknown; did you mean"
    ):
        check_names("settings", {"size": 1}, ["sizes"])
    with pytest.raises(ConfigError, match="settings: must be an object, not list"):
        check_names("settings", [], [])
    with pytest.raises(ConfigError, match="config: must be an object, not int"):
        check_object("config", 3)


def test_ids_are_told_from_other_arrays() -> None:
    ids, _, others = split_arrays({"items.ids": IDS, "x": IDS})
    assert (list(ids), list(others)) == (["ids"], ["x"])
