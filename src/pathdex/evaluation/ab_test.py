"""Comparing the arms of an A/B test: ratio metrics with bootstrap intervals over users, and times with censoring.

Arms have different users, so the tests of `significance` for the same users do not apply. A metric is a ratio of two
sums over users, such as finished views per view. Users are drawn with replacement, since the views of one user are not
independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from pathdex.errors import DataError, Problem
from pathdex.evaluation.significance import CONFIDENCE

Floats: TypeAlias = NDArray[np.float64]

RESAMPLES = 2000
_TAILS = (50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE))


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95% interval; None where there is no data."""

    value: float | None
    low: float | None
    high: float | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class UserRatio:
    """A ratio of two sums over users, and the same of resampled users."""

    value: float
    replicates: Floats

    def estimate(self) -> Estimate:
        return Estimate(self.value, *_interval(self.replicates))


def user_ratio(numerator: ArrayLike, denominator: ArrayLike, *, seed: int = 0) -> UserRatio:
    """The ratio of two sums over users, from one pair of numbers per user."""
    pairs = np.column_stack([np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)])
    if not pairs[:, 1].sum() > 0:
        raise DataError(Problem("must have a positive sum", "denominator", 0, "the arm had no users; simulate more"))
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(len(pairs), np.full(len(pairs), 1 / len(pairs)), RESAMPLES)
    above, below = (counts @ pairs).T
    value = float(pairs[:, 0].sum() / pairs[:, 1].sum())
    return UserRatio(value, np.divide(above, below, out=np.full(RESAMPLES, value), where=below > 0))


def relative_difference(first: UserRatio, second: UserRatio) -> tuple[Estimate, float]:
    """By how much the first is above the second, as a share of the second, and a two-sided p-value of no difference.

    The ratios must come from different seeds, since their users are independent.
    """
    if not second.value:
        return Estimate(None, None, None), 1.0
    changes = first.replicates / np.maximum(second.replicates, 1e-12) - 1
    below, above = np.count_nonzero(changes <= 0), np.count_nonzero(changes >= 0)
    p = min(1.0, 2 * (1 + min(below, above)) / (1 + len(changes)))
    return Estimate(first.value / second.value - 1, *_interval(changes)), p


def share(successes: int, count: int) -> Estimate:
    """A share of independent things with Wilson's interval."""
    if not count:
        return Estimate(None, None, None)
    interval = stats.binomtest(successes, count).proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(successes / count, float(interval.low), float(interval.high))


def mean_of(values: Sequence[float]) -> Estimate:
    """A mean with Student's interval; without one for a single value."""
    if not values:
        return Estimate(None, None, None)
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, None, None)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * stats.sem(values))
    return Estimate(mean, mean - half, mean + half)


@dataclass(frozen=True)
class Survival:
    """The Kaplan-Meier estimate of a waiting time of which some ends were not seen."""

    times: Floats
    """Sorted times at which something ended."""
    waiting: Floats
    """The share that still waits right after each time."""
    low: Floats
    high: Floats
    """Greenwood's interval on the log-log scale."""
    count: int
    ended: int

    def quantile(self, share: float) -> Estimate:
        """The time by which so large a share has ended; None if that was not reached."""

        def first(waiting: Floats) -> float | None:
            # Shares such as 1 - 0.9 are not exact.
            reached = np.flatnonzero(waiting <= 1 - share + 1e-9)
            return float(self.times[reached[0]]) if len(reached) else None

        return Estimate(first(self.waiting), first(self.low), first(self.high))

    def ended_by(self, time: float) -> Estimate:
        """The share that has ended by a time."""
        place = int(np.searchsorted(self.times, time, side="right")) - 1
        if place < 0:
            return Estimate(0.0 if self.count else None, None, None)
        return Estimate(1 - float(self.waiting[place]), 1 - float(self.high[place]), 1 - float(self.low[place]))


def kaplan_meier(times: ArrayLike, ended: ArrayLike) -> Survival:
    """From one waiting time each: until the end, or until nobody looked any more (`ended` is False)."""
    waited, seen = np.asarray(times, np.float64), np.asarray(ended, np.bool_)
    points = np.unique(waited[seen])
    at_risk = len(waited) - np.searchsorted(np.sort(waited), points)
    ends = np.array([np.count_nonzero(seen & (waited == point)) for point in points], np.float64)
    waiting: Floats = np.cumprod(1 - ends / np.maximum(at_risk, 1)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum(ends / (at_risk * (at_risk - ends)))
        width = stats.norm.ppf((1 + CONFIDENCE) / 2) * np.sqrt(variance) / np.abs(np.log(waiting))
        low, high = waiting ** np.exp(width), waiting ** np.exp(-width)
    # Where all have ended there is no variance, and the estimate itself is the bound.
    low, high = (np.where(np.isfinite(one) & (waiting > 0), one, waiting) for one in (low, high))
    return Survival(points, waiting, low, high, len(waited), int(seen.sum()))


def _interval(values: Floats) -> tuple[float, float]:
    low, high = (float(one) for one in np.percentile(values, _TAILS))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise DataError(Problem("the users of an arm are too few for an interval", remedy="simulate more users"))
    return low, high
