"""What a stored delta must hold before it changes a live model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.vocabulary_rules import vocabulary_problems
from pathdex.errors import ConfigError
from pathdex.index.postings import NO_PATH
from pathdex.kernels.types import Ints
from pathdex.recommenders.bundle_checks import MAX_COUNT, check_names, check_object
from pathdex.recommenders.model_state import NEIGHBOURS, neighbour_specs
from pathdex.recommenders.weight_specs import network_specs, row_width
from pathdex.storage.array_spec import ArraySpec, array_problems, index_spec, weight_spec

MAX_ITEMS = 2**31 - 1
"""Codes are stored in 32 bits."""


def form_problems(settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    """What is wrong with a stored delta by itself, whatever model it is for."""
    try:
        check_names("settings", settings, ("num_items", "settings"))
        check_object("settings", settings["settings"])
    except ConfigError as error:
        return [str(error)]
    count = settings["num_items"]
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_ITEMS:
        return [f"num_items={count!r}: must be a whole number from 0 to {MAX_ITEMS}"]
    codes = {"low": 0, "high": count - 1, "order": "ascending"}
    specs = {
        "items": ArraySpec(dtype="int64", shape=("changed",), **codes),  # type: ignore[arg-type]
        "rows": weight_spec("changed", "width"),
        "paths": index_spec("changed", "paths", below=2**63, dtype="int64", low=NO_PATH),
        "counts": index_spec("changed", below=MAX_COUNT, dtype="int64"),
        "id_codes": ArraySpec(dtype="int64", shape=("new",), **codes),  # type: ignore[arg-type]
        "removed": ArraySpec(dtype="int64", shape=("removed",), **codes),  # type: ignore[arg-type]
        **neighbour_specs(count),
    }
    ids = {name.removeprefix("ids."): one for name, one in arrays.items() if name.startswith("ids.")}
    found, names = vocabulary_problems(ids, index=False)
    problems = array_problems({name: one for name, one in arrays.items() if not name.startswith("ids.")}, specs)
    problems += [f"ids.{problem}" for problem in found]
    if 0 < len(set(NEIGHBOURS) & arrays.keys()) < len(NEIGHBOURS):
        problems.append(f"{', '.join(NEIGHBOURS)}: must all be there, or none")
    if not problems and names != len(arrays["id_codes"]):
        problems.append(f"ids: has {names} ids, must have {len(arrays['id_codes'])}")
    return problems


def value_problems(
    config: Config, num_items: int, arrays: Mapping[str, NDArray[Any]], weights: Mapping[str, NDArray[Any]]
) -> list[str]:
    """What is wrong with the arrays of a delta for a model with this configuration."""
    assert config.num_nodes is not None
    width, each = row_width(config), config.paths_per_item
    specs = {
        "items": index_spec("changed", below=num_items, dtype="int64"),
        "rows": weight_spec("changed", width),
        "paths": index_spec("changed", each, below=config.num_nodes**config.depth, dtype="int64", low=NO_PATH),
        "counts": index_spec("changed", below=MAX_COUNT, dtype="int64"),
        **neighbour_specs(num_items),
    }
    problems = array_problems(arrays, specs)
    if weights:
        problems += [f"weight {one}" for one in array_problems(weights, network_specs(config, config))]
    return problems or _repeated_paths(arrays["paths"])


def _repeated_paths(paths: Ints) -> list[str]:
    own = np.sort(paths, axis=1)
    twice = ((own[:, 1:] == own[:, :-1]) & (own[:, 1:] != NO_PATH)).any(axis=1)
    return ["paths: an item has a path twice, the paths of an item must be distinct"] if twice.any() else []
