"""Whether a bundle holds what its estimator can read, before any of it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from pathdex.data.detail_rules import detail_problems
from pathdex.data.item_details import part_of
from pathdex.data.reading import Reading
from pathdex.data.vocabulary_rules import vocabulary_problems
from pathdex.errors import ConfigError, PathdexError, did_you_mean
from pathdex.storage.bundle import Bundle
from pathdex.storage.bundle_rules import NONE_REMOVED, BundleRules

Arrays = dict[str, NDArray[Any]]
MAX_COUNT = 2**53
"""Stored counts of interactions are below this, so that they are exact in floats."""


def bundle_problems(
    bundle: Bundle, rules_of: Callable[[Mapping[str, Any], int], BundleRules], *, values: bool = True
) -> list[str]:
    """Everything that is wrong with the content of a bundle.

    `rules_of` gives the rules for its settings and the size of its catalogue. Without `values`, only settings, names,
    dtypes and shapes are checked, which takes the same time for any size.
    """
    vocabulary, details, arrays = split_arrays(bundle.arrays)
    found, num_items = vocabulary_problems(vocabulary, values=values)
    if found:
        return [f"items.{problem}" for problem in found]
    try:
        Reading.from_dict(bundle.reading or {})
    except PathdexError as error:
        return [f"reading: {error}"]
    if found := detail_problems(bundle.details, details, values=values):
        return [f"details.{problem}" for problem in found]
    try:
        rules = rules_of(bundle.settings, num_items)
    except PathdexError as error:
        return [f"settings: {error}"]
    removed = vocabulary.get("removed", NONE_REMOVED)
    return rules.problems(arrays, bundle.weights, removed=removed, values=values)


def split_arrays(arrays: Mapping[str, NDArray[Any]]) -> tuple[Arrays, Arrays, Arrays]:
    """The arrays of the vocabulary, those of the details of items, and all others."""
    rest = {name: array for name, array in arrays.items() if not name.startswith(("items.", "details."))}
    return part_of(arrays, "items."), part_of(arrays, "details."), rest


def check_names(subject: str, values: Any, names: Iterable[str]) -> None:
    """Raise `ConfigError` unless stored values are an object with exactly these names."""
    check_object(subject, values)
    wanted = set(names)
    problems = [f"{subject}: {name!r} is missing" for name in sorted(wanted - values.keys())]
    for name in sorted(values.keys() - wanted):
        problems.append(f"{subject}: {name!r} is unknown{did_you_mean(name, wanted)}")
    if problems:
        raise ConfigError(problems)


def check_object(subject: str, values: Any) -> None:
    """Raise `ConfigError` unless a stored value is an object."""
    if not isinstance(values, Mapping):
        raise ConfigError([f"{subject}: must be an object, not {type(values).__name__}"])
