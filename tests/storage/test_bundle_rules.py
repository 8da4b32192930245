"""The rules of a whole bundle."""

import numpy as np

from pathdex.storage.array_spec import ArraySpec, weight_spec
from pathdex.storage.bundle_rules import REMOVED, SHOWN, BundleRules, listed

ONE = np.ones(1, np.float32)


def test_problems_of_arrays_and_weights_are_listed_together() -> None:
    rules = BundleRules({"a": weight_spec(2)}, {"w": weight_spec(3)})
    found = rules.problems({"a": ONE}, {"w": ONE})
    assert found == ["a: has shape (1,), must have shape (2)", "weight w: has shape (1,), must have shape (3)"]


def test_the_relation_is_asked_only_about_valid_arrays() -> None:
    rules = BundleRules({"a": weight_spec(1)}, relation=lambda arrays: [f"a is {arrays['a'][0]:g}"])
    assert rules.problems({"a": ONE}, {}) == ["a is 1"]
    assert rules.problems({"a": ONE}, {}, values=False) == []
    assert rules.problems({"a": np.ones(2, np.float32)}, {}) == ["a: has shape (2,), must have shape (1)"]


def test_some_arrays_come_together_or_not_at_all() -> None:
    spec = ArraySpec(dtype="float32", shape=(1,), optional=True)
    rules = BundleRules({"a": spec, "b": spec}, together=("a", "b"))
    assert rules.problems({}, {}) == rules.problems({"a": ONE, "b": ONE}, {}) == []
    assert rules.problems({"b": ONE}, {}) == ["b: needs a"]


def test_weights_of_earlier_versions_are_ignored() -> None:
    rules = BundleRules(weights={"w": weight_spec(1)}, ignored_weights="old.")
    assert rules.problems({}, {"w": ONE, "old.w": np.full(3, np.nan)}) == []


def test_removed_items_need_an_estimator_that_leaves_them_out() -> None:
    removed = np.array([3])
    (problem,) = BundleRules().problems({}, {}, removed=removed)
    assert problem == "items.removed: must be empty, since this estimator could recommend removed items"
    rules = BundleRules(removes_items=True, relation=lambda arrays: [str(arrays[REMOVED].tolist())])
    assert rules.problems({}, {}, removed=removed) == ["[3]"]


def test_a_list_of_problems_is_bounded() -> None:
    assert listed(["one"]) == "one"
    assert listed(["one", "two"]) == "2 problems\n  - one\n  - two"
    many = listed([str(number) for number in range(100)])
    assert many.endswith(f"  - {SHOWN - 1}\n  - and {100 - SHOWN} more")
