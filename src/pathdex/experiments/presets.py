"""Data sets with a known protocol, and how much a comparison measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathdex.config import PRESETS as CONFIGS
from pathdex.data.datasets import DATASETS
from pathdex.errors import ConfigError, Problem, did_you_mean

NONE = "none"


@dataclass(frozen=True)
class Preset:
    """How a data set is read, split and evaluated."""

    name: str
    n: int
    seeds: tuple[int, ...]
    model: Mapping[str, Any] = field(default_factory=dict)
    """Hyper-parameters of Deep Retrieval; if given, it is not tuned."""

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
"""The first two use the hyper-parameters of the paper's Section 4; `none` is for any other data."""


def find_preset(name: str | None, source: Path) -> Preset:
    """The preset of that name; without a name, the preset of the data set with this file name."""
    if name is None:
        return PRESETS[next((one for one in DATASETS if one in PRESETS and _is_file_of(one, source)), NONE)]
    if name not in PRESETS:
        raise ConfigError(
            [Problem(f"must be one of {', '.join(PRESETS)}{did_you_mean(name, PRESETS)}", "preset", name)]
        )
    return PRESETS[name]


def _is_file_of(name: str, source: Path) -> bool:
    filename = Path(DATASETS[name].filename)
    return source.name in (filename.name, filename.stem)


@dataclass(frozen=True)
class Budget:
    """How much a comparison measures."""

    max_held_out: int | None = None
    """Limit for the validation users, and for the test users."""
    max_users: int | None = None
    """Limit for the users in the data."""
    timed_queries: int = 200
    """Different queries in one round of timing."""
    timing_rounds: int = 5
    max_points: int | None = None
    """Limit for the points of a curve and of a sensitivity study."""


FULL = Budget()
QUICK_METHODS = ("popularity", "item-cf", "deep-retrieval", "brute-force")
"""Methods of a quick comparison, unless some are named."""
QUICK = Budget(max_held_out=200, max_users=5_000, timed_queries=30, timing_rounds=3, max_points=3)
