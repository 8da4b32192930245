"""Search for the penalty alpha that gives paths of a wanted size.

A useful alpha depends on V, J, N_v, the degree of f and the sharpness of the scores, and ranges over many orders of
magnitude; the number of items on a path is easier to choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar

from numpy.typing import ArrayLike

from pathdex.index.checks import check_int, check_number
from pathdex.index.coordinate_descent import AssignmentProblem
from pathdex.kernels.types import Ints

Solution = TypeVar("Solution")
MAX_TRIALS = 24
"""Limit of a search. From the last round's penalty it takes one to three trials, from none about six."""
MANY_ITEMS = 200_000
"""With this many items, trials run at most two iterations of Algorithm 2: sizes hardly change later."""
_FAR = 1e12
"""Multiplied by this, a penalty outweighs any likelihood."""


@dataclass(frozen=True)
class FoundPenalty:
    """A penalty, the paths that `assign_paths` gives with it, and the path size they reach."""

    penalty: float
    paths: Ints
    """(item, path)"""
    path_size: float
    """The number of items on the path of an average item."""
    reached: bool
    """Whether `path_size` is within the tolerance; if not, it is the nearest that was found."""
    trials: int
    """The number of penalties that the search tried."""


def penalty_for_path_size(
    codes: ArrayLike,
    scores: ArrayLike,
    counts: ArrayLike,
    current_paths: ArrayLike,
    *,
    path_size: float,
    penalty_degree: float = 4,
    iterations: int = 4,
    start: float | None = None,
    tolerance: float = 0.1,
    seed: int = 0,
) -> FoundPenalty:
    """Find the penalty for which the path of an average item holds `path_size` items, within a relative `tolerance`.

    `start` is the first penalty to try, ideally that of the last round. The paths are exactly those of `assign_paths`
    with the penalty found. If no penalty reaches the size (paths are smaller without one, or the scored paths are too
    few to spread the items further), the nearest result is returned with `reached=False`.
    """
    wanted = check_number("path_size", path_size, low=1.0)
    degree = check_number("penalty_degree", penalty_degree, low=2.0)
    iterations = check_int("iterations", iterations)
    tolerance = check_number("tolerance", tolerance, low=0.0, high=1.0)
    if start is not None:
        check_number("start", start, low=0.0)
    problem = AssignmentProblem(codes, scores, counts, current_paths, seed)
    penalty, paths, trials = search_penalty(problem, wanted, degree, iterations, start, tolerance)
    size = problem.path_size(paths)
    return FoundPenalty(penalty, paths, size, abs(size - wanted) <= tolerance * wanted, trials)


class Solvable(Protocol[Solution]):
    """An M-step that can be solved for several penalties, in one process or on several workers."""

    num_items: int

    @property
    def mean_scored_count(self) -> float:
        """The mean N_v of the items with scores."""

    def solve(self, penalty: float, degree: float, iterations: int) -> Solution:
        """Paths by Algorithm 2."""

    def path_size(self, paths: Solution) -> float:
        """Items on the path of an average item."""


def search_penalty(
    problem: Solvable[Solution],
    wanted: float,
    degree: float,
    iterations: int,
    start: float | None = None,
    tolerance: float = 0.1,
) -> tuple[float, Solution, int]:
    """The penalty, its paths and the number of trials; arguments as in `penalty_for_path_size`."""
    if not start:
        # Joining a path of the wanted size then costs one nat of likelihood per occurrence.
        start = max(problem.mean_scored_count, 1.0) / float(wanted ** (degree - 1))
    few = min(iterations, 2) if problem.num_items >= MANY_ITEMS else iterations

    @lru_cache(maxsize=1)
    def solve(penalty: float, iterations: int) -> Solution:
        return problem.solve(penalty, degree, iterations)

    search = _Search(lambda penalty: problem.path_size(solve(penalty, few)), wanted, tolerance, slope=degree - 1)
    penalty = search.run(start)
    return penalty, solve(penalty, iterations), search.trials


class _Search:
    """Find the alpha at which the path size, which falls as alpha rises, meets a goal, on logarithmic scales.

    Steps until the goal is bracketed, then uses false position. If all likelihood gains were equal, |c|^(degree - 1)
    would be proportional to 1 / alpha; that slope sets the first step. If the goal cannot be reached, it moves to the
    nearest size that can.
    """

    def __init__(self, size: Callable[[float], float], wanted: float, tolerance: float, slope: float) -> None:
        self._size, self._goal, self._tolerance, self._slope = size, math.log(wanted), tolerance, slope
        self.trials = 0

    def run(self, start: float) -> float:
        x, miss = math.log(start), self._miss(start)
        step = miss * self._slope
        while not self._hits(miss) and self.trials < MAX_TRIALS:
            step = math.copysign(min(max(abs(step), 0.5), math.log(1000)), step)
            last_x, last_miss = x, miss
            x, miss = x + step, self._miss(math.exp(x + step))
            if self.trials == 2 and last_miss * miss > 0 and not self._hits(miss):
                limit = self._miss(math.exp(x) * _FAR if miss > 0 else 0.0)
                if miss < 0 and limit < 0:
                    return 0.0
                if miss > 0 and limit > 0:
                    # Aim for the smallest penalty near the limit: a larger one costs likelihood and gains nothing.
                    moved = limit + math.log1p(self._tolerance)
                    self._goal += moved
                    miss, last_miss = miss - moved, last_miss - moved
            if last_miss * miss < 0 and not self._hits(miss):
                return self._close_in(last_x, last_miss, x, miss)
            step *= 2
        return math.exp(x)

    def _close_in(self, x0: float, miss0: float, x1: float, miss1: float) -> float:
        """False position between two penalties that bracket the goal, with the Illinois rule."""
        best, best_miss = (x0, miss0) if abs(miss0) < abs(miss1) else (x1, miss1)
        while not self._hits(best_miss) and self.trials < MAX_TRIALS and abs(x1 - x0) > 0.02:
            x = x1 - miss1 * (x1 - x0) / (miss1 - miss0)
            miss = self._miss(math.exp(x))
            if abs(miss) < abs(best_miss):
                best, best_miss = x, miss
            if miss * miss1 < 0:
                x0, miss0 = x1, miss1
            else:
                miss0 /= 2
            x1, miss1 = x, miss
        return math.exp(best)

    def _miss(self, penalty: float) -> float:
        self.trials += 1
        return math.log(self._size(penalty)) - self._goal

    def _hits(self, miss: float) -> bool:
        return abs(math.expm1(miss)) <= self._tolerance
