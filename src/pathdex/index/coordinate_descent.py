"""The M-step: every item moves to the J paths with the largest gain (Algorithm 2)."""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit, prange
from numpy.typing import ArrayLike, NDArray

from pathdex.errors import DataError
from pathdex.index.checks import check_int, check_number, int_array, path_array, score_array
from pathdex.index.health import item_mean_size
from pathdex.index.path_choice import PathCodes, Penalty, choose_paths, contains, keep_current_paths
from pathdex.index.path_ids import PathNumbers
from pathdex.kernels.hashing import EMPTY, ROWS_PER_RANGE, rows_with_repeats
from pathdex.kernels.prefetch import prefetch_lines
from pathdex.kernels.threads import run_ranges
from pathdex.kernels.types import Floats, Int32s, Ints, Mask

_MIN_PARALLEL = 256
"""Items per block from which threads save more than they cost to start."""
_AHEAD = 8
"""Items between asking memory for a row, for the sizes of its first paths, and reading them."""
_FIRST_PATHS = 8
"""Candidate paths whose sizes are asked for in advance; most items read fewer."""
_PART = 64
"""Items of a block that a thread takes at once."""


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

    Nothing as large as the score table is copied: rows are read where they are, in the random order of the visits.
    """

    def __init__(
        self, codes: ArrayLike, scores: ArrayLike, counts: ArrayLike, current_paths: ArrayLike, seed: int = 0
    ) -> None:
        random = np.random.default_rng(check_int("seed", seed, low=0))
        codes, self.scores, self.counts, current = check_table(codes, scores, counts, current_paths)
        self.scored = scored_rows(self.scores)
        self.num_items = len(self.scored)
        self.order = random.permutation(np.flatnonzero(self.scored))
        self.numbers = PathNumbers.for_table(codes, current)
        self.candidate_paths = self.numbers.number(codes, self.scores)
        self.current = self.numbers.number(current)

    @property
    def mean_scored_count(self) -> float:
        """The mean N_v of the items with scores."""
        counts = self.counts[self.scored]
        return float(counts.mean()) if len(counts) else 1.0

    def path_size(self, paths: Ints) -> float:
        """Items on the path of an average item."""
        return item_mean_size(np.unique(paths, return_counts=True)[1])

    def solve(self, penalty: float, degree: float, iterations: int, block_size: int | None = None) -> Ints:
        """Paths (item, path) by Algorithm 2."""
        paths = self.current.copy()
        block_size = block_size or default_block_size(len(paths))
        sizes = np.bincount(paths[~self.scored].ravel(), minlength=len(self.numbers)).astype(np.int32)
        for t in range(iterations):
            visit_items(
                self.order,
                self.candidate_paths,
                self.scores,
                self.counts,
                self.current,
                paths,
                sizes,
                Penalty.of(penalty, degree),
                placed=t > 0,
                block_size=block_size,
            )
        return self.numbers.codes(paths)


def visit_items(
    order: Ints,
    candidate_paths: PathCodes,
    scores: Floats,
    counts: Floats,
    current: PathCodes,
    paths: PathCodes,
    sizes: Int32s,
    penalty: Penalty,
    *,
    placed: bool,
    block_size: int,
) -> None:
    """One iteration of Algorithm 2 over the items in `order`: `paths` is pi and `sizes` is |c|, both updated in place.

    Path numbers index `sizes`. `placed` says whether `sizes` counts the items on `paths`.
    """
    visit = _visit_blocks if block_size < _MIN_PARALLEL else _visit_large_blocks
    visit(order, candidate_paths, scores, counts, current, paths, sizes, penalty, placed, block_size)


@njit(cache=True, nogil=True)
def _visit_blocks(
    order: Ints,
    candidate_paths: PathCodes,
    scores: Floats,
    counts: Floats,
    current: PathCodes,
    paths: PathCodes,
    sizes: Int32s,
    penalty: Penalty,
    placed: bool,
    block_size: int,
) -> None:
    chosen = np.empty((block_size, paths.shape[1]), paths.dtype)
    for start in range(0, len(order), block_size):
        end = min(start + block_size, len(order))
        choose_block(order, start, end, candidate_paths, scores, counts, current, paths, sizes, penalty, placed, chosen)
        move_block(order, start, end, chosen, paths, sizes, placed)


@njit(cache=True, nogil=True, parallel=True)
def _visit_large_blocks(
    order: Ints,
    candidate_paths: PathCodes,
    scores: Floats,
    counts: Floats,
    current: PathCodes,
    paths: PathCodes,
    sizes: Int32s,
    penalty: Penalty,
    placed: bool,
    block_size: int,
) -> None:
    """`_visit_blocks` on several threads. Small catalogues never compile it."""
    chosen = np.empty((block_size, paths.shape[1]), paths.dtype)
    for start in range(0, len(order), block_size):
        end = min(start + block_size, len(order))
        for part in prange((end - start + _PART - 1) // _PART):
            first = part * _PART
            choose_block(
                order,
                start + first,
                min(start + first + _PART, end),
                candidate_paths,
                scores,
                counts,
                current,
                paths,
                sizes,
                penalty,
                placed,
                chosen[first:],
            )
        move_block(order, start, end, chosen, paths, sizes, placed)


@njit(cache=True, nogil=True)
def choose_block(
    order: Ints,
    start: int,
    end: int,
    candidate_paths: PathCodes,
    scores: Floats,
    counts: Floats,
    current: PathCodes,
    paths: PathCodes,
    sizes: Int32s,
    penalty: Penalty,
    placed: bool,
    chosen: PathCodes,
) -> None:
    """The new paths of items `order[start:end]`, each against the same `sizes`: `chosen` has a row for each."""
    seen = np.empty(candidate_paths.shape[1], np.int32)
    for i in range(start, end):
        if i + 2 * _AHEAD < len(order):
            _expect_row(order[i + 2 * _AHEAD], candidate_paths, scores, counts, paths)
        if i + _AHEAD < len(order):
            _expect_sizes(candidate_paths[order[i + _AHEAD]], sizes)
        v, new = order[i], chosen[i - start]
        last = paths[v] if placed else paths[v, :0]
        found = choose_paths(candidate_paths[v], scores[v], counts[v], last, sizes, penalty, seen, new)
        if found < len(new):
            keep_current_paths(new, found, current[v])


@njit(cache=True, nogil=True)
def move_block(
    order: Ints,
    start: int,
    end: int,
    chosen: PathCodes,
    paths: PathCodes,
    sizes: Int32s,
    placed: bool,
) -> None:
    """Move items `order[start:end]` to the paths they have chosen."""
    for i in range(start, end):
        v = order[i]
        for j in range(paths.shape[1]):
            if placed:
                sizes[paths[v, j]] -= 1
            paths[v, j] = chosen[i - start, j]
            sizes[paths[v, j]] += 1


@njit(cache=True, nogil=True, inline="always")
def _expect_row(v: int, candidate_paths: PathCodes, scores: Floats, counts: Floats, paths: PathCodes) -> None:
    prefetch_lines(candidate_paths, v, 2)
    prefetch_lines(scores, v, 1)
    prefetch_lines(counts, v, 1)
    prefetch_lines(paths, v, 1)


@njit(cache=True, nogil=True, inline="always")
def _expect_sizes(candidate_paths: PathCodes, sizes: Int32s) -> None:
    for c in range(min(_FIRST_PATHS, len(candidate_paths))):
        prefetch_lines(sizes, candidate_paths[c], 1)


def summed_scores(codes: Ints, scores: Floats, paths: Ints) -> NDArray[np.float64]:
    """sum_j s[v, pi_j(v)] of every item."""
    sums = np.zeros(len(paths))
    run_ranges(partial(_sum_scores, codes, scores, paths, sums), len(paths), least=ROWS_PER_RANGE)
    return sums


@njit(cache=True, nogil=True)
def _sum_scores(codes: Ints, scores: Floats, paths: Ints, sums: NDArray[np.float64], first: int, end: int) -> None:
    for v in range(first, end):
        for c in range(codes.shape[1]):
            if contains(paths[v], codes[v, c]):
                sums[v] += scores[v, c]


def check_table(
    codes: ArrayLike, scores: ArrayLike, counts: ArrayLike, paths: ArrayLike
) -> tuple[Ints, Floats, Floats, Ints]:
    paths = path_array("current_paths", paths)
    codes = int_array("codes", codes, len(paths), None, low=EMPTY)
    scores = score_array("scores", scores, *codes.shape)
    counts = score_array("counts", counts, len(paths))
    check_rows(codes, scores, paths)
    return codes, scores, counts, paths


def check_rows(codes: Ints, scores: Floats, paths: Ints, first: int = 0) -> None:
    """Refuse rows that break a rule; `first` is the item of the first row."""
    _check_rows("codes", rows_with_repeats(codes), "hold a path once; add up its scores", first)
    _check_rows("current_paths", rows_with_repeats(paths), "hold a path once; start from random_paths", first)
    _check_rows("scores", _unsorted_rows(codes, scores), "descend to 0 where codes has -1; use a ScoreTable", first)


def scored_rows(scores: Floats) -> Mask:
    """Which items have a scored path; rows descend."""
    scored: Mask = scores[:, :1].sum(axis=1) > 0
    return scored


def _unsorted_rows(codes: Ints, scores: Floats) -> Mask:
    unsorted: Mask = np.any((codes == EMPTY) & (scores > 0), axis=1)
    unsorted |= np.any(scores[:, 1:] > scores[:, :-1], axis=1)
    return unsorted


def _check_rows(name: str, broken: Mask, rule: str, first: int) -> None:
    if broken.any():
        raise DataError(f"{name}: row {first + broken.argmax()} breaks the rule that a row must {rule}")
