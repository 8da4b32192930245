"""How experiments hold out users: check the options of a split before reading data, then split the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pathdex.data.interactions import Interactions
from pathdex.data.splits import Queries, Split, make_split, users_to_hold_out
from pathdex.errors import Problem, did_you_mean

SPLIT_OPTIONS: dict[str, tuple[str, ...]] = {
    "users": ("valid_users", "test_users"),
    "temporal": ("valid_share", "test_share"),
    "leave-last": ("k",),
}
"""The options of each kind of split."""
HELD_OUT_SHARE = 20
MAX_HELD_OUT = 1000
USEFUL_HELD_OUT, MAX_SHARE = 200, 0.15
"""Of few users, more than a twentieth is held out, up to this number and this share: with 200 users, the standard error
of a figure is about a fourteenth of its spread between users."""
FEW_HELD_OUT = 100
"""Fewer held-out users than this are worth a warning."""


def split_problems(split: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with `kind` and its options, as far as it is known without the data."""
    kind = split["kind"]
    if kind not in SPLIT_OPTIONS:
        return [Problem(f"must be one of {', '.join(SPLIT_OPTIONS)}{did_you_mean(kind, SPLIT_OPTIONS)}", "split", kind)]
    problems = []
    for name, value in split.items():
        if name != "kind" and name not in SPLIT_OPTIONS[kind]:
            owner = next(other for other, names in SPLIT_OPTIONS.items() if name in names)
            problems.append(Problem(f"belongs to split={owner!r}, not {kind!r}", name, value, "leave it out"))
        elif name.endswith("_users") and value < 0:
            problems.append(Problem("must be a whole number of at least 0", name, value))
    return problems


def prepare_split(data: Interactions, split: Mapping[str, Any], *, seed: int, max_held_out: int | None = None) -> Split:
    """Split the data. `split` holds `kind` and its options; the seed draws users, so it does not affect other kinds.

    `max_held_out` limits the validation users, and the test users.
    """
    options = dict(split)
    kind = options.pop("kind")
    if kind == "users":
        held_out = {**default_held_out(data), **options}
        if max_held_out is not None:
            held_out = {name: min(max_held_out, count) for name, count in held_out.items()}
        options = {**held_out, "seed": seed}
    made = make_split(data, kind, **options)
    if max_held_out is None:
        return made
    return Split(made.train, _first(made.valid, max_held_out), _first(made.test, max_held_out))


def default_held_out(data: Interactions) -> dict[str, int]:
    """5% of the users who can be held out for each set, at most 1000.

    Of fewer than 4000 users it is 200, or 15% of them if that is less; at least 1 if there are 3 such users.
    """
    able = len(users_to_hold_out(data))
    useful = min(USEFUL_HELD_OUT, int(MAX_SHARE * able))
    count = min(MAX_HELD_OUT, max(able // HELD_OUT_SHARE, useful, 1 if able > 2 else 0))
    return {"valid_users": count, "test_users": count}


def few_users_note(queries: Queries) -> str | None:
    """What to say about figures of so few users; None if there are enough."""
    if not 0 < len(queries) < FEW_HELD_OUT:
        return None
    return (
        f"only {len(queries):,} users are held out, so figures are rough and small differences between methods mean "
        "nothing; hold out more with --test-users, or evaluate on a file of your own with --test"
    )


def _first(queries: Queries, count: int) -> Queries:
    return queries.take(np.arange(min(count, len(queries))))
