"""Spread over seeds, and paired tests over the same users.

The test is Fisher's randomisation test on the users' differences: under the hypothesis that two methods are equally
good, the sign of a user's difference is a coin toss. It assumes no distribution. A user who was held out in several
seeds counts once, with the mean of the differences, since such differences are not independent. So the test speaks
about other users; whether training again would change the verdict shows in the differences of the single seeds.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from pathdex.errors import DataError

Floats: TypeAlias = NDArray[np.float64]

RESAMPLES = 9_999
"""Random sign patterns; with few users all patterns are gone through instead."""
LEVEL = 0.95
"""Of the interval around a difference."""
_BLOCK = 4_000_000
_TIES = 1 - 1e-12
"""Sums that are equal but for rounding count as equal."""


@dataclass(frozen=True)
class PairedTest:
    """How much better the first is than the second."""

    users: int
    """Distinct users."""
    difference: float
    """Mean over the users, first minus second."""
    low: float
    high: float
    """The interval around it, by Student's t."""
    p: float
    """Two-sided, of the randomisation test."""
    by_seed: tuple[float, ...]
    """The mean difference in each seed."""

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "by_seed": list(self.by_seed)}


def paired_test(
    first: Sequence[ArrayLike], second: Sequence[ArrayLike], users: Sequence[Sequence[Hashable]], *, seed: int = 0
) -> PairedTest:
    """Compare two methods by a figure of each user; one array per seed, beside the ids of its users."""
    by_seed = [np.asarray(a, np.float64) - np.asarray(b, np.float64) for a, b in zip(first, second, strict=True)]
    for number, (values, ids) in enumerate(zip(by_seed, users, strict=True)):
        if values.shape != (len(ids),):
            raise DataError(
                f"seed number {number + 1} has values of shape {values.shape} for {len(ids):,} users: must be one per "
                "user; pass the figures of the same users"
            )
    pooled = _one_per_user(by_seed, users)
    if not len(pooled):
        raise DataError("users is empty: must hold at least one user; hold out more users")
    low, high = _interval(pooled)
    return PairedTest(
        users=len(pooled),
        difference=float(pooled.mean()),
        low=low,
        high=high,
        p=sign_flip_p(pooled, seed=seed),
        by_seed=tuple(float(values.mean()) for values in by_seed if len(values)),
    )


def sign_flip_p(differences: Floats, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Two-sided p: the share of sign patterns whose mean is at least as far from 0 as the one found.

    All patterns where there are at most `resamples`; else so many random ones and the one found.
    """
    # A difference of 0 is the same under either sign.
    moving = differences[differences != 0]
    if not len(moving):
        return 1.0
    found = _TIES * abs(moving.sum())
    if 2 ** len(moving) <= resamples:
        patterns = (np.arange(2 ** len(moving))[:, None] >> np.arange(len(moving))) & 1
        return float((np.abs(_sums(patterns, moving)) >= found).mean())
    random, beyond, left = np.random.default_rng(seed), 0, resamples
    while left:
        rows = min(left, max(1, _BLOCK // len(moving)))
        patterns = random.integers(0, 2, (rows, len(moving)), dtype=np.int8)
        beyond += int((np.abs(_sums(patterns, moving)) >= found).sum())
        left -= rows
    return (1 + beyond) / (1 + resamples)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number by Holm's step-down method, in the order given."""
    order = np.argsort(p_values, kind="stable")
    corrected, highest = [0.0] * len(p_values), 0.0
    for place, number in enumerate(order.tolist()):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[number]))
        corrected[number] = highest
    return corrected


def spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation; no deviation for a single value."""
    if not values:
        raise DataError("values is empty: must hold at least one figure")
    array = np.asarray(values, np.float64)
    return float(array.mean()), float(array.std(ddof=1)) if len(array) > 1 else None


def _one_per_user(by_seed: Sequence[Floats], users: Sequence[Sequence[Hashable]]) -> Floats:
    sums: dict[Hashable, list[float]] = {}
    for values, ids in zip(by_seed, users, strict=True):
        for one, value in zip(ids, values.tolist(), strict=True):
            sums.setdefault(one, []).append(value)
    return np.array([sum(values) / len(values) for values in sums.values()])


def _sums(patterns: NDArray[np.integer], values: Floats) -> Floats:
    sums: Floats = 2 * (patterns @ values) - values.sum()
    return sums


def _interval(values: Floats) -> tuple[float, float]:
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return mean, mean
    half = float(stats.t.ppf((1 + LEVEL) / 2, count - 1) * values.std(ddof=1) / math.sqrt(count))
    return mean - half, mean + half
