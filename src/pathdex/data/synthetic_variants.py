"""Named synthetic data sets that differ in what a model can learn from them.

Each is small enough to train in one to two minutes on one core. They are used to check that one set of
hyper-parameters suits all kinds of data.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pathdex.data.synthetic import generate
from pathdex.data.synthetic_habits import Habits
from pathdex.errors import ConfigError, Problem, did_you_mean


@dataclass(frozen=True)
class Variant:
    """Sizes and habits of a synthetic data set."""

    summary: str
    users: int
    items: int
    interactions: int
    habits: Habits
    depth: int = 3

    def options(self) -> dict[str, Any]:
        """Keywords of `generate`."""
        names = ("users", "items", "interactions", "depth", "habits")
        return {name: getattr(self, name) for name in names}


_MEDIUM: dict[str, Any] = {"users": 5_000, "items": 4_000, "interactions": 150_000}
"""The sizes of the variants that are compared in pairs."""

VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {
        "long-histories": Variant(
            "few users with very long histories, many products, repeat purchases, weak order",
            users=600,
            items=12_000,
            interactions=240_000,
            depth=2,
            habits=Habits(order=0.05, repetition=0.3, popularity=0.3),
        ),
        "short-histories": Variant(
            "many users with short histories",
            users=25_000,
            items=6_000,
            interactions=160_000,
            habits=Habits(order=0.3, popularity=0.1),
        ),
        "strong-order": Variant("the next item depends on the last one", **_MEDIUM, habits=Habits(order=0.7)),
        "weak-order": Variant("only the user's taste matters", **_MEDIUM, habits=Habits()),
        "heavy-repetition": Variant(
            "most rows repeat an earlier item of the user", **_MEDIUM, habits=Habits(order=0.1, repetition=0.6)
        ),
        "light-repetition": Variant("the same with few repeats", **_MEDIUM, habits=Habits(order=0.1, repetition=0.05)),
        "sparse": Variant(
            "2.5 rows per item; best-sellers are a strong baseline",
            users=12_000,
            items=40_000,
            interactions=100_000,
            habits=Habits(order=0.05, popularity=0.8),
        ),
    }
)


def find_variant(name: str) -> Variant:
    """The variant with this name."""
    if name not in VARIANTS:
        rule = f"must be one of {', '.join(VARIANTS)}{did_you_mean(name, list(VARIANTS))}"
        raise ConfigError([Problem(rule, "variant", name)])
    return VARIANTS[name]


def generate_variant(path: str | os.PathLike[str], name: str, **options: Any) -> Path:
    """Write a variant as `generate` does; `options` are further keywords of `generate` and replace the variant's."""
    return generate(path, **{**find_variant(name).options(), **options})
