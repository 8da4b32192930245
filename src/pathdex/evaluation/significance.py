"""Paired significance tests over the same users, and the spread over seeds.

The test is Fisher's randomisation test on the users' differences. Under the null hypothesis that two methods are
equally good, the sign of each difference is random; the test assumes no distribution. A user held out in several seeds
counts once, with the mean difference, because these differences are not independent. The test therefore generalises to
other users; `by_seed` shows whether retraining changes the verdict.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from pathdex.errors import DataError, Problem

Floats: TypeAlias = NDArray[np.float64]

RESAMPLES = 9_999
"""Random sign patterns; if there are fewer patterns in all, every one is used."""
CONFIDENCE = 0.95
_BATCH_CELLS = 4_000_000
"""Signs drawn at a time, to bound memory."""


@dataclass(frozen=True)
class PairedTest:
    """The difference between two methods, first minus second."""

    users: int
    """Distinct users."""
    difference: float
    """Mean over the users."""
    low: float
    high: float
    """Student's t interval of the difference."""
    p: float
    """Two-sided p-value of the randomisation test."""
    p_holm: float
    """The same corrected for the number of tests; `p` for a single test."""
    by_seed: tuple[float, ...]
    """Mean difference in each seed."""

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "by_seed": list(self.by_seed)}


def paired_test(
    first: Sequence[ArrayLike], second: Sequence[ArrayLike], users: Sequence[Sequence[Hashable]], *, seed: int = 0
) -> PairedTest:
    """Compare two methods by one metric. Each argument has one entry per seed: the users' values, and their ids."""
    by_seed = [np.asarray(a, np.float64) - np.asarray(b, np.float64) for a, b in zip(first, second, strict=True)]
    for number, (values, ids) in enumerate(zip(by_seed, users, strict=True)):
        if values.shape != (len(ids),):
            rule = f"seed number {number + 1} has values of shape {values.shape} for {len(ids):,} users"
            raise DataError(Problem(rule, remedy="pass one value per user"))
    differences = _mean_by_user(by_seed, users)
    if not len(differences):
        raise DataError(Problem("must hold at least one user", "users", [], "hold out more users"))
    mean, half_width = float(differences.mean()), 0.0
    if len(differences) > 1:
        half_width = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(differences) - 1) * stats.sem(differences))
    p = sign_flip_p(differences, seed=seed)
    return PairedTest(
        users=len(differences),
        difference=mean,
        low=mean - half_width,
        high=mean + half_width,
        p=p,
        p_holm=p,
        by_seed=tuple(float(values.mean()) for values in by_seed if len(values)),
    )


def paired_tests(
    pairs: Iterable[tuple[Sequence[ArrayLike], Sequence[ArrayLike]]], users: Sequence[Sequence[Hashable]]
) -> list[PairedTest]:
    """Tests of several pairs on the same users, corrected for their number by Holm's method."""
    tests = [paired_test(first, second, users) for first, second in pairs]
    return [replace(test, p_holm=p) for test, p in zip(tests, holm([test.p for test in tests]), strict=True)]


def sign_flip_p(differences: Floats, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Two-sided p-value: the share of sign patterns whose mean is at least as far from 0 as the observed mean.

    Exact if there are at most `resamples` patterns; otherwise estimated from random patterns and the observed one.
    """
    # A difference of 0 is the same under either sign; a single one is as far from 0 under both.
    nonzero = differences[differences != 0]
    if len(nonzero) < 2:
        return 1.0
    if 2 ** len(nonzero) <= resamples:
        exact = stats.permutation_test(
            (nonzero,), _distance, permutation_type="samples", n_resamples=resamples, alternative="greater"
        )
        return float(exact.pvalue)
    generator = np.random.default_rng(seed)

    def flip_signs(*, size: tuple[int, ...]) -> Floats:
        """(pattern, user). scipy's `permutation_test` draws signs user by user, which takes ten times as long."""
        flipped: Floats = nonzero * (2 * generator.integers(0, 2, size, dtype=np.int8) - 1)
        return flipped

    batch = max(1, _BATCH_CELLS // len(nonzero))
    sampled = stats.monte_carlo_test(
        nonzero, flip_signs, _distance, n_resamples=resamples, batch=batch, alternative="greater"
    )
    return float(sampled.pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number by Holm's step-down method, in the order given."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factors * np.asarray(p_values, np.float64)[order]))
    found: list[float] = corrected.tolist()
    return found


def spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation; None for the deviation of a single value."""
    if not values:
        raise DataError(Problem("must hold at least one number", "values", []))
    array = np.asarray(values, np.float64)
    return float(array.mean()), float(array.std(ddof=1)) if len(array) > 1 else None


def _distance(values: Floats, axis: int = -1) -> Floats:
    """How far the mean is from 0."""
    distance: Floats = np.abs(values.mean(axis=axis))
    return distance


def _mean_by_user(by_seed: Sequence[Floats], users: Sequence[Sequence[Hashable]]) -> Floats:
    differences: dict[Hashable, list[float]] = {}
    for values, ids in zip(by_seed, users, strict=True):
        for user, value in zip(ids, values.tolist(), strict=True):
            differences.setdefault(user, []).append(value)
    return np.array([sum(values) / len(values) for values in differences.values()])
