"""The M-step with the items on several workers: the same paths as `assign_paths`, bit by bit.

Items choose against the sizes |c| at the start of their block, so the workers of a block need nothing from each other
but the moves of the last one. Each worker keeps |c| of the paths that its own items may take.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from pathdex.index.coordinate_descent import check_table, choose_paths, default_block_size, scored_rows, sizes_without
from pathdex.index.path_ids import assign_path_ids
from pathdex.kernels.hashing import EMPTY, find_slot, new_table
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
        codes, scores, own_counts, current = check_table(codes, scores, own_counts, current_paths)
        scored = scored_rows(scores)
        everywhere = np.zeros(self.num_items, np.bool_)
        for rank, part in enumerate(peers.gather(scored)):
            everywhere[rank :: peers.size] = part
        order = np.random.default_rng(seed).permutation(np.flatnonzero(everywhere))
        self.num_scored = len(order)
        self.mean_count = float(counts[order].mean()) if len(order) else 1.0
        owner = order % peers.size
        own_places = np.flatnonzero(owner == peers.rank)
        self.places, visited = own_places, order[own_places] // peers.size
        self._owner = owner.astype(np.int32)
        self.order = np.concatenate([visited, np.flatnonzero(~scored)])
        self.own_scored = len(visited)
        self.counts = own_counts[self.order]
        self.table = assign_path_ids(codes, scores, current, self.order, self.own_scored)
        self.slots = _slots(self.table.codes)
        self.base = self._sizes_of_unscored()

    def _sizes_of_unscored(self) -> Int32s:
        """|c| of the items that never move."""
        sizes = np.zeros(len(self.table.codes), np.int32)
        own = self.table.codes[self.table.current[self.own_scored :]]
        rounds = int(max(self.peers.stack(np.array([-(-len(own) // ROWS_AT_ONCE)]))[:, 0]))
        for one in range(rounds):
            for part in self.peers.gather(own[one * ROWS_AT_ONCE : (one + 1) * ROWS_AT_ONCE]):
                _add_codes(part.ravel(), 1, self.slots, sizes)
        return sizes

    def solve(self, penalty: float, degree: float, iterations: int, block_size: int | None = None) -> SolvedPaths:
        """The own items' paths by Algorithm 2."""
        codes, candidate_paths, scores, current = self.table
        block_size = block_size or default_block_size(self.num_items)
        blocks = -(-self.num_scored // block_size)
        starts = np.searchsorted(self.places, np.arange(blocks + 1) * block_size)
        largest = self._largest_share(block_size, blocks)
        paths, sizes = current.copy(), self.base.copy()
        J = paths.shape[1]
        seen, chosen = np.empty((largest, candidate_paths.shape[1]), np.int32), np.empty((largest, J), np.int32)
        moves = np.empty((largest, 2 * J), np.int64)
        fixed = candidate_paths, scores, self.counts, current
        for iteration in range(iterations):
            placed = iteration > 0
            for block in range(blocks):
                first, end = int(starts[block]), int(starts[block + 1])
                work = partial(_choose, *fixed, paths, placed, sizes, penalty, degree, seen, chosen, first)
                run_ranges(work, end - first, least=ROWS_PER_RANGE)
                moves[:] = EMPTY
                _write_moves(codes, paths, chosen, placed, first, end, moves)
                _apply_moves(self.peers.stack(moves), self.slots, sizes)
        assigned = np.empty(paths.shape, np.int64)
        on_each = np.empty(paths.shape, np.int64)
        assigned[self.order], on_each[self.order] = codes[paths], sizes[paths]
        return SolvedPaths(assigned, on_each, self.peers)

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


def _slots(codes: Ints) -> Ints:
    slots = new_table(max(1, len(codes)))
    _fill_slots(codes, slots)
    return slots


@njit(cache=True, nogil=True)
def _fill_slots(codes: Ints, slots: Ints) -> None:
    for number in range(len(codes)):
        slot = find_slot(slots, codes[number])
        slots[slot, 0], slots[slot, 1] = codes[number], number


@njit(cache=True, nogil=True)
def _add_codes(codes: Ints, change: int, slots: Ints, sizes: Int32s) -> None:
    """Add to |c| of the codes that this worker's items may take."""
    for code in codes:
        if code != EMPTY:
            slot = find_slot(slots, code)
            if slots[slot, 0] == code:
                sizes[slots[slot, 1]] += change


@njit(cache=True, nogil=True)
def _apply_moves(moves: Ints, slots: Ints, sizes: Int32s) -> None:
    """Apply the moves (worker, item, [left | joined]) of a block."""
    J = moves.shape[2] // 2
    for worker in range(len(moves)):
        for row in range(moves.shape[1]):
            for j in range(2 * J):
                code = moves[worker, row, j]
                if code != EMPTY:
                    slot = find_slot(slots, code)
                    if slots[slot, 0] == code:
                        sizes[slots[slot, 1]] += 1 if j >= J else -1


@njit(cache=True, nogil=True)
def _write_moves(codes: Ints, paths: Int32s, chosen: Int32s, placed: bool, first: int, end: int, moves: Ints) -> None:
    """Move the own items of a block, and write the codes that they leave and join."""
    J = paths.shape[1]
    for v in range(first, end):
        for j in range(J):
            old, new = paths[v, j], chosen[v - first, j]
            if not placed or old != new:
                if placed:
                    moves[v - first, j] = codes[old]
                moves[v - first, J + j] = codes[new]
            paths[v, j] = new


@njit(cache=True, nogil=True)
def _choose(
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
    offset: int,
    first: int,
    end: int,
) -> None:
    for row in range(first, end):
        v = offset + row
        own, new = seen[row], chosen[row]
        sizes_without(candidate_paths[v], paths[v], placed, sizes, own)
        choose_paths(candidate_paths[v], scores[v], counts[v], current[v], own, alpha, degree, new)
