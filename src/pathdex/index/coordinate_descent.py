"""The M-step: every item moves to the J paths that gain most (Algorithm 2)."""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import ArrayLike, NDArray

from pathdex.errors import DataError
from pathdex.index.checks import (
    Codes,
    Scores,
    check_number,
    check_whole,
    path_array,
    score_array,
    whole_array,
)
from pathdex.index.hashing import EMPTY, rows_with_repeats
from pathdex.index.numbering import Numbers, number_paths

_TAKEN = 2**31 - 1
"""Larger than any path: marks a candidate that the item has chosen already."""
_WORTH_THREADS = 512
"""Items in a block from which on starting threads costs less than they save."""


def assign_paths(
    codes: ArrayLike,
    scores: ArrayLike,
    counts: ArrayLike,
    current_paths: ArrayLike,
    *,
    penalty: float,
    penalty_degree: float = 4,
    iterations: int = 4,
    seed: int = 0,
    block_size: int | None = None,
) -> Codes:
    """New paths (item, path) that maximise sum_v N_v log(sum_j s[v, pi_j(v)]) - penalty * sum_c f(|c|).

    Implements Algorithm 2 with f(n) = n^degree / degree. `codes` and `scores` are a `ScoreTable`'s; `counts` holds
    N_v. Items without scores keep `current_paths` and count in |c|. An item with fewer than J scored paths takes them
    all and keeps as many of its present paths as it still needs. The result depends on `seed` and `block_size` alone,
    never on the number of threads.

    Differs from the paper: items go in a random order, in blocks. The items of a block choose in parallel, each against
    the sizes |c| at the start of the block; then all of them move. With `block_size=1` items go one by one, as in the
    paper. The default depends on the number of items only and is at most 1/64 of them, so that few items of a block
    meet on a path.

    Differs from the paper: all J paths of the last iteration are taken off |c| before an item chooses its first path,
    not one at each step. Otherwise an item's own second path would count against its staying there like another item.

    Differs from the paper: the gain of the first path is N_v log s - penalty (f(|c|+1) - f(|c|)).
    """
    problem = Problem(codes, scores, counts, current_paths)
    return problem.solve(
        check_number("penalty", penalty, low=0.0),
        check_number("penalty_degree", penalty_degree, low=2.0),
        check_whole("iterations", iterations),
        check_whole("seed", seed, low=0),
        None if block_size is None else check_whole("block_size", block_size),
    )


def assignment_objective(
    codes: ArrayLike,
    scores: ArrayLike,
    counts: ArrayLike,
    paths: ArrayLike,
    *,
    penalty: float,
    penalty_degree: float = 4,
) -> float:
    """The surrogate of the M-step, sum_v N_v log(sum_j s[v, pi_j(v)]) - penalty * sum_c |c|^degree / degree.

    The first sum runs over the items that have scores. It is -inf where such an item is on none of its scored paths.
    """
    problem = Problem(codes, scores, counts, paths)
    penalty = check_number("penalty", penalty, low=0.0)
    degree = check_number("penalty_degree", penalty_degree, low=2.0)
    sums = _summed_scores(problem.candidates, problem.scores, problem.current)[problem.scored]
    with np.errstate(divide="ignore"):
        likelihood = np.sum(problem.counts[problem.scored] * np.log(sums))
    sizes = np.bincount(problem.current.ravel())
    return float(likelihood - penalty * np.sum(sizes.astype(np.float64) ** degree) / degree)


def default_block_size(num_items: int) -> int:
    """How many items choose at once; a property of the problem and not of the machine."""
    return max(1, min(8192, num_items // 64))


class Problem:
    """The checked input of an M-step, to be solved for one penalty or several.

    Paths are numbered by their first appearance, so that |c| is an array over the paths that occur, never over K^D.
    """

    def __init__(self, codes: ArrayLike, scores: ArrayLike, counts: ArrayLike, current_paths: ArrayLike) -> None:
        current = path_array("current_paths", current_paths)
        self.num_items = len(current)
        codes = whole_array("codes", codes, self.num_items, None, low=EMPTY)
        self.scores = score_array("scores", scores, *codes.shape)
        self.counts = score_array("counts", counts, self.num_items)
        _check_rows("codes", rows_with_repeats(codes), "hold a path once; add up its scores")
        _check_rows("current_paths", rows_with_repeats(current), "hold a path once; start from random_paths")
        _check_rows("scores", _unsorted_rows(codes, self.scores), "descend to 0 where codes has -1; use a ScoreTable")
        self.path_codes, self.candidates, self.current = number_paths(codes, self.scores, current)

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which items have a path with a score."""
        known: NDArray[np.bool_] = self.candidates[:, :1].max(axis=1, initial=EMPTY) != EMPTY
        return known

    def solve(self, penalty: float, degree: float, iterations: int, seed: int, block_size: int | None = None) -> Codes:
        """Algorithm 2."""
        order = np.random.default_rng(seed).permutation(np.flatnonzero(self.scored))
        sizes = np.bincount(self.current[~self.scored].ravel(), minlength=len(self.path_codes)).astype(np.int32)
        block_size = block_size or default_block_size(self.num_items)
        paths = self.current.copy()
        _coordinate_descent(
            self.candidates,
            self.scores,
            self.counts,
            self.current,
            order,
            sizes,
            paths,
            float(penalty),
            float(degree),
            iterations,
            block_size,
        )
        return self.path_codes[paths]


@njit(cache=True, nogil=True)
def _coordinate_descent(
    candidates: Numbers,
    scores: Scores,
    counts: Scores,
    current: Numbers,
    order: Codes,
    sizes: Numbers,
    paths: Numbers,
    alpha: float,
    degree: float,
    iterations: int,
    block_size: int,
) -> None:
    """Algorithm 2 over path numbers: `paths` is pi and `sizes` is |c|, both updated in place."""
    seen = np.empty((block_size, candidates.shape[1]), np.int32)
    chosen = np.empty((block_size, paths.shape[1]), np.int32)
    for t in range(iterations):
        for start in range(0, len(order), block_size):
            block = order[start : start + block_size]
            if len(block) < _WORTH_THREADS:
                for i in range(len(block)):
                    _sizes_without(block[i], t > 0, candidates, paths, sizes, seen[i])
                    _choose(block[i], candidates, scores, counts, current, seen[i], alpha, degree, chosen[i])
            else:
                _choose_in_parallel(
                    block, t > 0, candidates, scores, counts, current, paths, sizes, alpha, degree, seen, chosen
                )
            for i in range(len(block)):
                v = block[i]
                for j in range(paths.shape[1]):
                    if t > 0:
                        sizes[paths[v, j]] -= 1
                    paths[v, j] = chosen[i, j]
                    sizes[paths[v, j]] += 1


@njit(cache=True, nogil=True, parallel=True)
def _choose_in_parallel(
    block: Codes,
    placed: bool,
    candidates: Numbers,
    scores: Scores,
    counts: Scores,
    current: Numbers,
    paths: Numbers,
    sizes: Numbers,
    alpha: float,
    degree: float,
    seen: Numbers,
    chosen: Numbers,
) -> None:
    for i in prange(len(block)):
        _sizes_without(block[i], placed, candidates, paths, sizes, seen[i])
        _choose(block[i], candidates, scores, counts, current, seen[i], alpha, degree, chosen[i])


@njit(cache=True, nogil=True)
def _sizes_without(
    v: int | np.int64, placed: bool, candidates: Numbers, paths: Numbers, sizes: Numbers, seen: Numbers
) -> None:
    """|c| of the candidates of item v, less its own assignment from the last iteration."""
    for c in range(candidates.shape[1]):
        seen[c] = sizes[candidates[v, c]]
    if placed:
        for j in range(paths.shape[1]):
            own = paths[v, j]
            for c in range(candidates.shape[1]):
                seen[c] -= np.int32(candidates[v, c] == own)


@njit(cache=True, nogil=True)
def _choose(
    v: int | np.int64,
    candidates: Numbers,
    scores: Scores,
    counts: Scores,
    current: Numbers,
    sizes: Numbers,
    alpha: float,
    degree: float,
    chosen: Numbers,
) -> None:
    """The J paths of item v, one after the other, each with the largest incremental gain."""
    J = len(chosen)
    found = 0
    partial_sum = 0.0
    while found < J:
        log_sum = np.log(partial_sum) if found > 0 else 0.0
        best, best_gain, smallest = -1, -np.inf, _TAKEN
        for c in range(candidates.shape[1]):
            if candidates[v, c] == EMPTY:
                break
            # Scores descend, so only a path smaller than all before it can gain more than they do.
            if sizes[c] < smallest:
                smallest = sizes[c]
                likelihood = counts[v] * (np.log(partial_sum + scores[v, c]) - log_sum)
                gain = likelihood - alpha * (_f(smallest + 1, degree) - _f(smallest, degree))
                if best < 0 or gain > best_gain:
                    best, best_gain = c, gain
                if smallest == 0:
                    break
        if best < 0:
            break
        chosen[found] = candidates[v, best]
        partial_sum += scores[v, best]
        sizes[best] = _TAKEN
        found += 1

    for j in range(J):
        if found < J and not _contains(chosen[:found], current[v, j]):
            chosen[found] = current[v, j]
            found += 1


@njit(cache=True, nogil=True, inline="always")
def _f(size: int, degree: float) -> float:
    penalty: float = float(size) ** degree / degree
    return penalty


@njit(cache=True, nogil=True)
def _contains(values: Numbers, wanted: int) -> bool:
    for value in values:  # noqa: SIM110, numba has no any()
        if value == wanted:
            return True
    return False


@njit(cache=True, nogil=True, parallel=True)
def _summed_scores(candidates: Numbers, scores: Scores, paths: Numbers) -> NDArray[np.float64]:
    """sum_j s[v, pi_j(v)] of every item."""
    sums = np.zeros(len(paths))
    for v in prange(len(paths)):
        for c in range(candidates.shape[1]):
            if _contains(paths[v], candidates[v, c]):
                sums[v] += scores[v, c]
    return sums


@njit(cache=True, nogil=True, parallel=True)
def _unsorted_rows(codes: Codes, scores: Scores) -> NDArray[np.bool_]:
    unsorted = np.zeros(len(codes), np.bool_)
    for v in prange(len(codes)):
        for s in range(codes.shape[1]):
            empty = codes[v, s] == EMPTY
            unsorted[v] |= (empty and scores[v, s] > 0) or (s > 0 and scores[v, s] > scores[v, s - 1])
    return unsorted


def _check_rows(name: str, broken: NDArray[np.bool_], rule: str) -> None:
    if broken.any():
        raise DataError(f"{name}: row {broken.argmax()} breaks the rule that a row must {rule}")
