"""95% intervals of figures: over the seeds if there are several, over the users if there is one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from pathdex.evaluation.significance import CONFIDENCE, spread

_TAIL = (1 + CONFIDENCE) / 2


def half_width(seeds: int, deviation: float | None, standard_error: float | None) -> float | None:
    """Half of the interval: Student's t over several seeds, the normal distribution over the users of one seed.

    `deviation` is that of the seeds, `standard_error` that of the users. None if the one that counts is unknown.
    """
    if seeds > 1:
        return None if deviation is None else float(stats.t.ppf(_TAIL, seeds - 1)) * deviation / math.sqrt(seeds)
    return None if standard_error is None else float(stats.norm.ppf(_TAIL)) * standard_error


def mean_and_half_width(
    values: Sequence[float | None], standard_errors: Sequence[float | None]
) -> tuple[float | None, float | None]:
    """The mean over the seeds and half of its interval, from the value and the standard error of each seed.

    A seed without a value leaves the mean of the others, without an interval.
    """
    known = [(value, error) for value, error in zip(values, standard_errors, strict=True) if value is not None]
    if not known:
        return None, None
    mean, deviation = spread([value for value, _ in known])
    return mean, half_width(len(known), deviation, known[0][1]) if len(known) == len(values) else None


def ratio_standard_error(numerators: ArrayLike, denominators: ArrayLike) -> float | None:
    """The standard error of a ratio of two sums over users, by linearisation; None for fewer than two users."""
    above, below = np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)
    if np.count_nonzero(below) < 2:
        return None
    residuals = above - above.sum() / below.sum() * below
    return float(residuals.std(ddof=1) * math.sqrt(len(residuals)) / below.sum())


def interval_words(seeds: int, half_widths: Iterable[float | None], drawn_as: str = "Whiskers") -> str:
    """What the intervals in a figure are; empty if it has none. `seeds` is the number that every value averages."""
    known = [one is not None for one in half_widths]
    if not any(known):
        return ""
    whose = f"over {seeds} seeds (Student's t)" if seeds > 1 else "over the test users of one seed"
    return f"{drawn_as}{'' if all(known) else ', where known'}: 95% intervals {whose}."
