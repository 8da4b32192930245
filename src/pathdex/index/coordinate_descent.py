"""The M-step: every item moves to the J paths that gain most (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Iterator

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
from pathdex.index.hashing import EMPTY, find_slot, new_table, rows_with_repeats

_TAKEN = 2**62
"""Larger than any path: marks a candidate that the item has chosen already."""


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
        default_block_size(problem.num_items) if block_size is None else check_whole("block_size", block_size),
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
    sums = _summed_scores(problem.codes, problem.scores, problem.current)[problem.scored]
    with np.errstate(divide="ignore"):
        likelihood = np.sum(problem.counts[problem.scored] * np.log(sums))
    sizes = np.unique(problem.current, return_counts=True)[1].astype(np.float64)
    return float(likelihood - penalty * np.sum(sizes**degree / degree))


def default_block_size(num_items: int) -> int:
    """How many items choose at once; a property of the problem and not of the machine."""
    return max(1, min(1024, num_items // 64))


class Problem:
    """The checked input of an M-step, to be solved for one penalty or several."""

    def __init__(self, codes: ArrayLike, scores: ArrayLike, counts: ArrayLike, current_paths: ArrayLike) -> None:
        self.current = path_array("current_paths", current_paths)
        self.num_items = len(self.current)
        self.codes = whole_array("codes", codes, self.num_items, None, low=EMPTY)
        self.scores = score_array("scores", scores, *self.codes.shape)
        self.counts = np.ascontiguousarray(score_array("counts", counts, self.num_items), np.float64)
        _check_rows("codes", rows_with_repeats(self.codes), "a path twice", "add up its scores")
        _check_rows("current_paths", rows_with_repeats(self.current), "a path twice", "start from random_paths")
        _check_rows("scores", _unsorted_rows(self.codes, self.scores), "a score above the one before", "sort the row")
        self.scored = _scored_rows(self.codes, self.scores)

    def solve(self, penalty: float, degree: float, iterations: int, seed: int, block_size: int) -> Codes:
        """Algorithm 2."""
        order = np.random.default_rng(seed).permutation(np.flatnonzero(self.scored))
        paths = self.current.copy()
        sizes = PathSizes(paths[~self.scored])
        candidate_sizes = np.empty((block_size, self.codes.shape[1]), np.int64)
        for iteration in range(iterations):
            for items in _blocks(order, block_size):
                last = paths[items] if iteration > 0 else paths[:0]
                paths[items] = _choose(
                    items,
                    self.codes,
                    self.scores,
                    self.counts,
                    self.current,
                    last,
                    sizes.table,
                    penalty,
                    degree,
                    candidate_sizes,
                )
                sizes.move(last, paths[items])
        return paths


class PathSizes:
    """|c| of every path that holds an item, in a hash table that grows with the paths in use, never with K^D."""

    def __init__(self, paths: Codes) -> None:
        self.table = new_table(paths.size)
        self._occupied = _add(self.table, paths, 1)

    def move(self, last: Codes, new: Codes) -> None:
        """Take items off their last paths and put them on new ones."""
        _add(self.table, last, -1)
        if 2 * (self._occupied + new.size) > len(self.table):
            # Paths that lost their last item are left behind here.
            live = self.table[self.table[:, 1] > 0]
            self.table = new_table(2 * (len(live) + new.size))
            self._occupied = _refill(self.table, live)
        self._occupied += _add(self.table, new, 1)


@njit(cache=True, nogil=True, parallel=True)
def _choose(
    items: Codes,
    codes: Codes,
    scores: Scores,
    counts: NDArray[np.float64],
    current: Codes,
    last: Codes,
    sizes: Codes,
    alpha: float,
    degree: float,
    candidate_sizes: Codes,
) -> Codes:
    """The inner loop of Algorithm 2 for each item of a block. `last` is empty in the first iteration (t = 1)."""
    J = current.shape[1]
    chosen = np.empty((len(items), J), np.int64)
    for i in prange(len(items)):
        v = items[i]
        size = candidate_sizes[i]
        candidates = 0
        while candidates < codes.shape[1] and scores[v, candidates] > 0:
            c = codes[v, candidates]
            slot = find_slot(sizes, c)
            size[candidates] = sizes[slot, 1] if sizes[slot, 0] == c else 0
            if len(last) > 0:
                for j in range(J):
                    size[candidates] -= last[i, j] == c
            candidates += 1

        partial_sum = 0.0
        for j in range(min(J, candidates)):
            log_sum = np.log(partial_sum) if j > 0 else 0.0
            best, best_gain, smallest = -1, -np.inf, _TAKEN
            for c in range(candidates):
                # Scores descend, so only a path smaller than all before it can gain more than they do.
                if size[c] < smallest:
                    smallest = size[c]
                    likelihood = counts[v] * (np.log(partial_sum + scores[v, c]) - log_sum)
                    gain = likelihood - alpha * ((smallest + 1.0) ** degree - float(smallest) ** degree) / degree
                    if best < 0 or gain > best_gain:
                        best, best_gain = c, gain
                    if smallest == 0:
                        break
            chosen[i, j] = codes[v, best]
            partial_sum += scores[v, best]
            size[best] = _TAKEN

        j = candidates
        for kept in current[v]:
            if j >= J:
                break
            if not _contains(chosen[i, :j], kept):
                chosen[i, j] = kept
                j += 1
    return chosen


@njit(cache=True, nogil=True)
def _contains(values: Codes, wanted: int) -> bool:
    for value in values:  # noqa: SIM110, numba has no any()
        if value == wanted:
            return True
    return False


@njit(cache=True, nogil=True)
def _add(table: Codes, paths: Codes, change: int) -> int:
    """Change |c| of these paths; how many of them were new to the table."""
    new = 0
    for c in paths.flat:
        slot = find_slot(table, c)
        if table[slot, 0] == EMPTY:
            table[slot, 0], table[slot, 1] = c, 0
            new += 1
        table[slot, 1] += change
    return new


@njit(cache=True, nogil=True)
def _refill(table: Codes, entries: Codes) -> int:
    for entry in entries:
        table[find_slot(table, entry[0])] = entry
    return len(entries)


@njit(cache=True, nogil=True, parallel=True)
def _summed_scores(codes: Codes, scores: Scores, paths: Codes) -> NDArray[np.float64]:
    """sum_j s[v, pi_j(v)] of every item."""
    sums = np.zeros(len(paths))
    for v in prange(len(paths)):
        for candidate in range(codes.shape[1]):
            if _contains(paths[v], codes[v, candidate]):
                sums[v] += scores[v, candidate]
    return sums


def _blocks(order: Codes, block_size: int) -> Iterator[Codes]:
    return (order[start : start + block_size] for start in range(0, len(order), block_size))


def _scored_rows(codes: Codes, scores: Scores) -> NDArray[np.bool_]:
    if not codes.shape[1]:
        return np.zeros(len(codes), np.bool_)
    scored: NDArray[np.bool_] = (codes[:, 0] != EMPTY) & (scores[:, 0] > 0)
    return scored


@njit(cache=True, nogil=True, parallel=True)
def _unsorted_rows(codes: Codes, scores: Scores) -> NDArray[np.bool_]:
    unsorted = np.zeros(len(codes), np.bool_)
    for v in prange(len(codes)):
        for s in range(codes.shape[1]):
            empty = codes[v, s] == EMPTY
            unsorted[v] |= (empty and scores[v, s] > 0) or (s > 0 and scores[v, s] > scores[v, s - 1])
    return unsorted


def _check_rows(name: str, broken: NDArray[np.bool_], finding: str, remedy: str) -> None:
    if broken.any():
        raise DataError(f"{name}: row {broken.argmax()} has {finding}, which is not allowed; {remedy}")
