"""The M-step: every item moves to the J paths with the largest gain (Algorithm 2)."""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit, prange
from numpy.typing import ArrayLike, NDArray

from pathdex.errors import DataError
from pathdex.index.checks import check_int, check_number, int_array, path_array, score_array
from pathdex.index.health import item_mean_size
from pathdex.index.path_ids import assign_path_ids
from pathdex.kernels.hashing import EMPTY, ROWS_PER_RANGE, rows_with_repeats
from pathdex.kernels.threads import run_ranges
from pathdex.kernels.types import Floats, Int32s, Ints, Mask

_TAKEN = 2**31 - 1
"""Larger than any |c|: marks a candidate path that the item has already chosen."""
_MIN_PARALLEL = 256
"""Items per block from which threads save more than they cost to start."""


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
) -> Ints:
    """New paths (item, path) that maximise sum_v N_v log(sum_j s[v, pi_j(v)]) - penalty * sum_c f(|c|).

    Implements Algorithm 2 with f(n) = n^degree / degree. `codes` and `scores` are those of a `ScoreTable`; `counts`
    holds N_v. Items without scores keep `current_paths` and count in |c|. An item with fewer than J scored paths takes
    all of them and fills up with its current paths. The result depends on `seed` and `block_size`, never on the number
    of threads.

    Differs from the paper: items go in random order, in blocks. The items of a block choose in parallel, each against
    the sizes |c| at the start of the block; then all of them move. With `block_size=1` items move one by one, as in the
    paper. The default depends on the number of items only and is at most 1/1024 of it, so items of a block rarely
    choose the same path.

    Differs from the paper: all J paths of the last iteration are taken off |c| before an item chooses its first path,
    not one at each step. Otherwise an item's own second path would count against it like another item.

    Differs from the paper: the gain of the first path is N_v log s - penalty (f(|c|+1) - f(|c|)).
    """
    penalty = check_number("penalty", penalty, low=0.0)
    degree = check_number("penalty_degree", penalty_degree, low=2.0)
    check_int("iterations", iterations)
    if block_size is not None:
        check_int("block_size", block_size)
    return AssignmentProblem(codes, scores, counts, current_paths, seed).solve(penalty, degree, iterations, block_size)


def assignment_objective(
    codes: ArrayLike,
    scores: ArrayLike,
    counts: ArrayLike,
    paths: ArrayLike,
    *,
    penalty: float,
    penalty_degree: float = 4,
) -> float:
    """The surrogate objective sum_v N_v log(sum_j s[v, pi_j(v)]) - penalty * sum_c |c|^degree / degree.

    The first sum runs over the items that have scores; it is -inf if one of them is on none of its scored paths.
    """
    penalty = check_number("penalty", penalty, low=0.0)
    degree = check_number("penalty_degree", penalty_degree, low=2.0)
    codes, scores, counts, paths = check_table(codes, scores, counts, paths)
    scored = scored_rows(scores)
    with np.errstate(divide="ignore"):
        likelihood = np.sum(counts[scored] * np.log(summed_scores(codes, scores, paths)[scored]))
    sizes = np.unique(paths, return_counts=True)[1].astype(np.float64)
    return float(likelihood - penalty * np.sum(sizes**degree) / degree)


def default_block_size(num_items: int) -> int:
    """How many items choose at once. Depends on the data only, never on the machine."""
    return max(1, min(8192, num_items // 1024))


class AssignmentProblem:
    """The checked input of an M-step, which can be solved for several penalties.

    Paths have small ids, so that |c| is an array over the paths that occur, never over K^D. Rows are stored in the
    random order in which items are visited, since a cache miss costs more than a visit; items without scores come last.
    """

    def __init__(
        self, codes: ArrayLike, scores: ArrayLike, counts: ArrayLike, current_paths: ArrayLike, seed: int = 0
    ) -> None:
        random = np.random.default_rng(check_int("seed", seed, low=0))
        codes, scores, counts, current = check_table(codes, scores, counts, current_paths)
        scored = scored_rows(scores)
        self.num_items = len(scored)
        self.order = np.concatenate([random.permutation(np.flatnonzero(scored)), np.flatnonzero(~scored)])
        self.num_scored = int(scored.sum())
        self.counts = counts[self.order]
        self.table = assign_path_ids(codes, scores, current, self.order, self.num_scored)

    @property
    def mean_scored_count(self) -> float:
        """The mean N_v of the items with scores."""
        counts = self.counts[: self.num_scored]
        return float(counts.mean()) if len(counts) else 1.0

    def path_size(self, paths: Ints) -> float:
        """Items on the path of an average item."""
        return item_mean_size(np.unique(paths, return_counts=True)[1])

    def solve(self, penalty: float, degree: float, iterations: int, block_size: int | None = None) -> Ints:
        """Paths (item, path) by Algorithm 2."""
        codes, candidate_paths, scores, current = self.table
        paths = current.copy()
        block_size = block_size or default_block_size(len(paths))
        sizes = np.bincount(paths[self.num_scored :].ravel(), minlength=len(codes)).astype(np.int32)
        descent = _coordinate_descent if block_size < _MIN_PARALLEL else _parallel_descent
        descent(candidate_paths, scores, self.counts, current, paths, sizes, penalty, degree, iterations, block_size)
        assigned = np.empty(paths.shape, np.int64)
        assigned[self.order] = codes[paths]
        return assigned


@njit(cache=True, nogil=True)
def _coordinate_descent(
    candidate_paths: Int32s,
    scores: Floats,
    counts: Floats,
    current: Int32s,
    paths: Int32s,
    sizes: Int32s,
    alpha: float,
    degree: float,
    iterations: int,
    block_size: int,
) -> None:
    """Algorithm 2 over path ids: `paths` is pi and `sizes` is |c|, both updated in place."""
    seen = np.empty((block_size, candidate_paths.shape[1]), np.int32)
    chosen = np.empty((block_size, paths.shape[1]), np.int32)
    for t in range(iterations):
        for start in range(0, len(candidate_paths), block_size):
            end = min(start + block_size, len(candidate_paths))
            for v in range(start, end):
                own, new = seen[v - start], chosen[v - start]
                sizes_without(candidate_paths[v], paths[v], t > 0, sizes, own)
                choose_paths(candidate_paths[v], scores[v], counts[v], current[v], own, alpha, degree, new)
            _move(start, end, chosen, t > 0, paths, sizes)


@njit(cache=True, nogil=True)
def _parallel_descent(
    candidate_paths: Int32s,
    scores: Floats,
    counts: Floats,
    current: Int32s,
    paths: Int32s,
    sizes: Int32s,
    alpha: float,
    degree: float,
    iterations: int,
    block_size: int,
) -> None:
    """`_coordinate_descent` for large blocks. Small catalogues never compile it."""
    seen = np.empty((block_size, candidate_paths.shape[1]), np.int32)
    chosen = np.empty((block_size, paths.shape[1]), np.int32)
    for t in range(iterations):
        for start in range(0, len(candidate_paths), block_size):
            end = min(start + block_size, len(candidate_paths))
            _choose_in_parallel(
                start,
                end,
                candidate_paths,
                scores,
                counts,
                current,
                paths,
                t > 0,
                sizes,
                alpha,
                degree,
                seen,
                chosen,
            )
            _move(start, end, chosen, t > 0, paths, sizes)


@njit(cache=True, nogil=True)
def _move(start: int, end: int, chosen: Int32s, placed: bool, paths: Int32s, sizes: Int32s) -> None:
    """Move a block of items to the paths they have chosen."""
    for v in range(start, end):
        for j in range(paths.shape[1]):
            if placed:
                sizes[paths[v, j]] -= 1
            paths[v, j] = chosen[v - start, j]
            sizes[paths[v, j]] += 1


@njit(cache=True, nogil=True, parallel=True)
def _choose_in_parallel(
    start: int,
    end: int,
    candidate_paths: Int32s,
    scores: Floats,
    counts: Floats,
    current: Int32s,
    paths: Int32s,
    placed: bool,
    sizes: Int32s,
    alpha: float,
    degree: float,
    seen: Int32s,
    chosen: Int32s,
) -> None:
    for v in prange(start, end):
        own, new = seen[v - start], chosen[v - start]
        sizes_without(candidate_paths[v], paths[v], placed, sizes, own)
        choose_paths(candidate_paths[v], scores[v], counts[v], current[v], own, alpha, degree, new)


@njit(cache=True, nogil=True)
def sizes_without(candidate_paths: Int32s, last: Int32s, placed: bool, sizes: Int32s, seen: Int32s) -> None:
    """|c| of an item's candidate paths, without its own assignment of the last iteration."""
    for c in range(len(candidate_paths)):
        seen[c] = sizes[candidate_paths[c]]
    if placed:
        for own in last:
            for c in range(len(candidate_paths)):
                seen[c] -= np.int32(candidate_paths[c] == own)


@njit(cache=True, nogil=True)
def choose_paths(
    candidate_paths: NDArray[np.integer],
    scores: Floats,
    N_v: float | np.float32,
    current: NDArray[np.integer],
    sizes: Int32s,
    alpha: float,
    degree: float,
    chosen: NDArray[np.integer],
) -> None:
    """Choose the J paths of one item one after the other, each with the largest incremental gain."""
    J, found = len(chosen), 0
    partial_sum = 0.0
    while found < J:
        log_sum = np.log(partial_sum) if found > 0 else 0.0
        best, best_gain, smallest = -1, -np.inf, _TAKEN
        for c in range(len(candidate_paths)):
            if candidate_paths[c] == EMPTY:
                break
            # Scores descend, so only a path smaller than all before it can have a larger gain.
            if sizes[c] < smallest:
                smallest = sizes[c]
                likelihood = N_v * (np.log(partial_sum + scores[c]) - log_sum)
                gain = likelihood - alpha * (_f(smallest + 1, degree) - _f(smallest, degree))
                if best < 0 or gain > best_gain:
                    best, best_gain = c, gain
                if smallest == 0:
                    break
        if best < 0:
            break
        chosen[found] = candidate_paths[best]
        partial_sum += scores[best]
        sizes[best] = _TAKEN
        found += 1

    for kept in current:
        if found < J and not _contains(chosen[:found], kept):
            chosen[found] = kept
            found += 1


@njit(cache=True, nogil=True, inline="always")
def _f(size: int, degree: float) -> float:
    penalty: float = float(size) ** degree / degree
    return penalty


@njit(cache=True, nogil=True)
def _contains(values: NDArray[np.integer], wanted: int) -> bool:
    for value in values:  # noqa: SIM110, numba has no any()
        if value == wanted:
            return True
    return False


def summed_scores(codes: Ints, scores: Floats, paths: Ints) -> NDArray[np.float64]:
    """sum_j s[v, pi_j(v)] of every item."""
    sums = np.zeros(len(paths))
    run_ranges(partial(_sum_scores, codes, scores, paths, sums), len(paths), least=ROWS_PER_RANGE)
    return sums


@njit(cache=True, nogil=True)
def _sum_scores(codes: Ints, scores: Floats, paths: Ints, sums: NDArray[np.float64], first: int, end: int) -> None:
    for v in range(first, end):
        for c in range(codes.shape[1]):
            if _contains(paths[v], codes[v, c]):
                sums[v] += scores[v, c]


def check_table(
    codes: ArrayLike, scores: ArrayLike, counts: ArrayLike, paths: ArrayLike
) -> tuple[Ints, Floats, Floats, Ints]:
    paths = path_array("current_paths", paths)
    codes = int_array("codes", codes, len(paths), None, low=EMPTY)
    scores = score_array("scores", scores, *codes.shape)
    counts = score_array("counts", counts, len(paths))
    _check_rows("codes", rows_with_repeats(codes), "hold a path once; add up its scores")
    _check_rows("current_paths", rows_with_repeats(paths), "hold a path once; start from random_paths")
    _check_rows("scores", _unsorted_rows(codes, scores), "descend to 0 where codes has -1; use a ScoreTable")
    return codes, scores, counts, paths


def scored_rows(scores: Floats) -> Mask:
    """Which items have a scored path; rows descend."""
    scored: Mask = scores[:, :1].sum(axis=1) > 0
    return scored


def _unsorted_rows(codes: Ints, scores: Floats) -> Mask:
    unsorted: Mask = np.any((codes == EMPTY) & (scores > 0), axis=1)
    unsorted |= np.any(scores[:, 1:] > scores[:, :-1], axis=1)
    return unsorted


def _check_rows(name: str, broken: Mask, rule: str) -> None:
    if broken.any():
        raise DataError(f"{name}: row {broken.argmax()} breaks the rule that a row must {rule}")
