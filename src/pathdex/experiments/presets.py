"""Data sets whose protocol is known, and how much work a comparison does."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathdex.config import PRESETS as CONFIGS
from pathdex.data.datasets import DATASETS
from pathdex.errors import ConfigError

NONE = "none"


@dataclass(frozen=True)
class Preset:
    """How a data set is read, split and evaluated."""

    name: str
    n: int
    seeds: tuple[int, ...]
    model: Mapping[str, Any] = field(default_factory=dict)
    """Hyper-parameters of Deep Retrieval; where they are given, it is not tuned."""

    @property
    def reading(self) -> dict[str, Any]:
        return {} if self.name == NONE else dict(DATASETS[self.name].reading)

    @property
    def split(self) -> dict[str, Any]:
        if self.name == NONE:
            return {"kind": "users"}
        source = DATASETS[self.name]
        return {"kind": "users", "valid_users": source.valid_users, "test_users": source.test_users}


PRESETS = {
    one.name: one
    for one in (
        Preset("movielens-20m", 10, (0, 1, 2, 3, 4), CONFIGS["paper-movielens-20m"]),
        Preset("amazon-books", 200, (0, 1, 2, 3, 4), CONFIGS["paper-amazon-books"]),
        Preset("movielens-1m", 10, (0, 1, 2)),
        Preset(NONE, 10, (0, 1, 2)),
    )
}
"""The first two have the settings of the paper's Section 4; `none` is for any other data."""


def find_preset(name: str | None, source: Path) -> Preset:
    """The preset of that name; without one, the preset of the data set whose file this is."""
    if name is None:
        found = [one for one in PRESETS if one != NONE and _is_file_of(one, source)]
        return PRESETS[found[0] if found else NONE]
    if name not in PRESETS:
        close = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ConfigError([f"preset={name!r}: must be one of {', '.join(PRESETS)}{hint}"])
    return PRESETS[name]


def _is_file_of(name: str, source: Path) -> bool:
    filename = Path(DATASETS[name].filename)
    return source.name in (filename.name, filename.stem)


@dataclass(frozen=True)
class Budget:
    """How much is measured."""

    most_held_out: int | None = None
    """Validation users, and as many test users, at most."""
    most_users: int | None = None
    """Users to train on, at most."""
    timed_queries: int = 200
    """Different queries of one round of timing."""
    timing_rounds: int = 5
    points: int | None = None
    """Points of a sweep, at most."""


FULL = Budget()
QUICK = Budget(most_held_out=200, most_users=5_000, timed_queries=30, timing_rounds=3, points=3)
