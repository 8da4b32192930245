"""The M-step with the items on several workers: the same paths as `assign_paths`, bit by bit.

Items choose against the sizes |c| at the start of their block, so the workers of a block need nothing from each other
but the moves of the last one. Each worker keeps |c| of the paths that its own items may take. Its numbers for paths
are its own, so moves travel as codes.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from pathdex.index.coordinate_descent import check_table, choose_block, default_block_size, scored_rows
from pathdex.index.path_choice import PathCodes, Penalty
from pathdex.index.path_ids import PathNumbers
from pathdex.kernels.hashing import EMPTY
from pathdex.kernels.threads import run_ranges
from pathdex.kernels.types import Floats, Int32s, Ints

ROWS_PER_RANGE = 256
"""Items that are worth a thread."""
ROWS_AT_ONCE = 65_536
"""Items without scores whose paths travel at once."""


class Peers(Protocol):
    """What an M-step needs of a group of workers. Worker r of N has the items r, r + N, r + 2N ..."""

    rank: int
    size: int

    def stack(self, array: NDArray[Any]) -> NDArray[Any]:
        """The arrays of all workers: (worker, ...)."""

    def gather(self, array: NDArray[Any]) -> list[NDArray[Any]]:
        """The arrays of all workers, of different lengths."""

    def total(self, array: NDArray[Any] | float) -> NDArray[Any]:
        """The sum of the workers' arrays."""


class ShardedProblem:
    """`AssignmentProblem` for the own items of one worker. `counts` are those of all items."""

    def __init__(
        self,
        peers: Peers,
        codes: ArrayLike,
        scores: ArrayLike,
        counts: ArrayLike,
        current_paths: ArrayLike,
        seed: int = 0,
    ) -> None:
        counts = np.asarray(counts, np.float32)
        self.peers, self.num_items = peers, len(counts)
        own_counts = counts[peers.rank :: peers.size]
        codes, self.scores, self.counts, current = check_table(codes, scores, own_counts, current_paths)
        scored = scored_rows(self.scores)
        everywhere = np.zeros(self.num_items, np.bool_)
        for rank, part in enumerate(peers.gather(scored)):
            everywhere[rank :: peers.size] = part
        self.mean_count = float(counts[everywhere].mean()) if everywhere.any() else 1.0
        order = np.random.default_rng(seed).permutation(np.flatnonzero(everywhere))
        self.num_scored = len(order)
        self._owner = (order % peers.size).astype(np.int32)
        self.places = np.flatnonzero(self._owner == peers.rank)
        self.order = order[self.places] // peers.size
        self.numbers = PathNumbers.for_table(codes, current)
        self.candidate_paths = self.numbers.number(codes, self.scores)
        self.current = self.numbers.number(current)
        self.code_of = self.numbers.codes(np.arange(len(self.numbers)))
        self.base = self._sizes_of(current[~scored])

    def _sizes_of(self, own: Ints) -> Int32s:
        """|c| of the items that never move; `own` are the paths of this worker's."""
        sizes = np.zeros(len(self.numbers), np.int32)
        rounds = int(max(self.peers.stack(np.array([-(-len(own) // ROWS_AT_ONCE)]))[:, 0]))
        for one in range(rounds):
            for part in self.peers.gather(own[one * ROWS_AT_ONCE : (one + 1) * ROWS_AT_ONCE]):
                _add(self.numbers.find(part.ravel()), 1, sizes)
        return sizes

    def solve(self, penalty: float, degree: float, iterations: int, block_size: int | None = None) -> SolvedPaths:
        """The own items' paths by Algorithm 2."""
        block_size = block_size or default_block_size(self.num_items)
        blocks = -(-self.num_scored // block_size)
        starts = np.searchsorted(self.places, np.arange(blocks + 1) * block_size)
        largest = self._largest_share(block_size, blocks)
        paths, sizes, price = self.current.copy(), self.base.copy(), Penalty.of(penalty, degree)
        J = paths.shape[1]
        chosen, moves = np.empty((largest, J), paths.dtype), np.empty((2, largest, J), np.int64)
        table = self.candidate_paths, self.scores, self.counts, self.current
        for iteration in range(iterations):
            placed = iteration > 0
            for block in range(blocks):
                first, end = int(starts[block]), int(starts[block + 1])
                work = partial(_choose, self.order, first, table, paths, sizes, price, placed, chosen)
                run_ranges(work, end - first, least=ROWS_PER_RANGE)
                moves[:] = EMPTY
                _move(self.order, first, end, chosen, paths, placed, self.code_of, moves)
                everywhere = self.numbers.find(self.peers.stack(moves))
                _add(everywhere[:, 0].ravel(), -1, sizes)
                _add(everywhere[:, 1].ravel(), 1, sizes)
        return SolvedPaths(self.numbers.codes(paths), sizes[paths].astype(np.int64), self.peers)

    def _largest_share(self, block_size: int, blocks: int) -> int:
        """The most items that any worker has in a block."""
        block = np.arange(self.num_scored) // block_size
        shares = np.bincount(block * self.peers.size + self._owner, minlength=blocks * self.peers.size)
        return int(shares.max(initial=0))

    @property
    def mean_scored_count(self) -> float:
        return self.mean_count

    def path_size(self, solved: SolvedPaths) -> float:
        return solved.mean_size()


class SolvedPaths:
    """The paths of the own items (item, path), and |c| of each."""

    def __init__(self, paths: Ints, sizes: Ints, peers: Peers) -> None:
        self.paths, self.sizes, self.peers = paths, sizes, peers

    def mean_size(self) -> float:
        """Items on the path of an average item, over all workers: sum |c|^2 / sum |c|, as `item_mean_size`."""
        squares, entries = self.peers.total(np.array([int(self.sizes.sum()), self.sizes.size])).tolist()
        return float(np.float64(squares) / entries) if entries else 0.0

    def penalty_term(self, degree: float) -> float:
        """sum_c |c|^degree: each of the |c| entries of a path adds |c|^(degree - 1)."""
        return float(self.peers.total(float(np.sum(self.sizes.astype(np.float64) ** (degree - 1)))))


@njit(cache=True, nogil=True)
def _add(numbers: Ints, change: int, sizes: Int32s) -> None:
    """Add to |c| of the paths that have a number here."""
    for number in numbers:
        if number != EMPTY:
            sizes[number] += change


def _choose(
    order: Ints,
    start: int,
    table: tuple[PathCodes, Floats, Floats, PathCodes],
    paths: PathCodes,
    sizes: Int32s,
    penalty: Penalty,
    placed: bool,
    chosen: PathCodes,
    first: int,
    end: int,
) -> None:
    """`choose_block` for the items `first` to `end` after `start`."""
    choose_block(order, start + first, start + end, *table, paths, sizes, penalty, placed, chosen[first:])


@njit(cache=True, nogil=True)
def _move(
    order: Ints, start: int, end: int, chosen: PathCodes, paths: PathCodes, placed: bool, code_of: Ints, moves: Ints
) -> None:
    """Move the own items of a block, and write the codes that they leave and join: (side, item, path)."""
    for i in range(start, end):
        v, row = order[i], i - start
        for j in range(paths.shape[1]):
            old, new = paths[v, j], chosen[row, j]
            if not placed or old != new:
                if placed:
                    moves[0, row, j] = code_of[old]
                moves[1, row, j] = code_of[new]
            paths[v, j] = new
