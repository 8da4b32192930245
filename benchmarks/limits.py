"""What this machine could do at best with the work of a query: multiply-adds, cache, memory.

A part of a query cannot be faster than its multiply-adds at the peak rate of one core, nor than the weights that do not
fit the first-level cache can be read again and again, nor than memory hands over the rows and lines that it picks at
random. The peaks are measured here, not taken from a data sheet.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.index.paths import decode_paths
from pathdex.recommenders.deep_retrieval import DeepRetrieval

Floats = NDArray[np.float32]

LINE = 64
"""Bytes that memory hands over at a time."""
FLOAT = 4
EXPONENTIAL = 8
"""Multiply-adds that an exponential counts as: range reduction, a polynomial of degree 5, scaling."""
GATES = 3
"""Matrices of a GRU on each side."""
INNER_BYTES, OUTER_BYTES = 1 << 17, 1 << 29
"""Sizes that live in the second-level cache, and in memory."""
INNER_ROUNDS = 1000
PLACES = 100_000
"""Random places that are read in one measurement."""


@dataclass(frozen=True)
class Peaks:
    """What one core of this machine reaches."""

    multiply_adds: float
    """float32 multiply-adds a second, in a product of matrices that fit the cache."""
    cache_bytes: float
    """Bytes a second from 128 KB read again and again."""
    memory_bytes: float
    """Bytes a second from 512 MB read in order."""
    row_seconds: float
    """Of one item row at a random place, among many that do not depend on each other."""
    line_seconds: float
    """Of one number at a random place, the same way."""
    latency_seconds: float
    """Of one number at a random place that the number before it names."""

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Work:
    """What a part of a query has to do."""

    multiply_adds: float = 0.0
    cache_bytes: float = 0.0
    rows: float = 0.0
    lines: float = 0.0

    def limits(self, peaks: Peaks) -> dict[str, float]:
        """The least microseconds that each kind of work takes; the part takes at least the largest of them."""
        return {
            "arithmetic": 1e6 * self.multiply_adds / peaks.multiply_adds,
            "cache": 1e6 * self.cache_bytes / peaks.cache_bytes,
            "memory": 1e6 * (self.rows * peaks.row_seconds + self.lines * peaks.line_seconds),
        }


def measure_peaks(table: Floats, *, repeats: int = 7) -> Peaks:
    """Measure on one thread; `table` is the item table of the model whose queries are held against this."""
    generator = np.random.default_rng(2)
    squares = [generator.standard_normal((size, size), dtype=np.float32) for size in (192, 256, 384)]
    multiply_adds = max(len(one) ** 3 / _fastest(lambda _, one=one: one @ one, repeats) for one in squares)
    inner, large = np.ones(INNER_BYTES // FLOAT, np.float32), np.ones(OUTER_BYTES // FLOAT, np.float32)
    # Other places every time, or the second reading would find them in the cache.
    rows = generator.integers(0, len(table), (repeats + 1, PLACES))
    places = generator.integers(0, len(large), (repeats + 1, PLACES))
    order = generator.permutation(OUTER_BYTES // 32)
    chain = np.empty(len(order), np.int64)
    chain[order] = np.roll(order, -1)
    return Peaks(
        multiply_adds,
        INNER_ROUNDS * inner.nbytes / _fastest(lambda _: _sum(inner, INNER_ROUNDS), repeats),
        large.nbytes / _fastest(lambda _: _sum(large, 1), repeats),
        _fastest(lambda repeat: _sum_rows(table, rows[repeat]), repeats) / PLACES,
        _fastest(lambda repeat: _sum_places(large, places[repeat]), repeats) / PLACES,
        _fastest(lambda repeat: _follow(chain, order[repeat * PLACES], PLACES), repeats) / PLACES,
    )


def work_of_query(model: DeepRetrieval, users: Floats, beam: int, history: int, candidates: float) -> dict[str, Work]:
    """The work of each part of a query with the GRU encoder and the MLP structure."""
    config, weights = model.config, model.retriever.structure
    dim, inputs = config.embedding_dim, min(history, config.history_length)
    side = GATES * dim * dim
    hidden, padded = weights.outputs.shape[1:]
    visits, active = _active_units(model, users, beam)
    path_items = float(model.postings.sizes.mean())
    return {
        # Inputs are known ahead, so their weights could be read once; the recurrent ones are needed anew at each step.
        "encode": Work(2 * side * inputs + 3 * dim * dim, FLOAT * side * (inputs + 1), rows=inputs),
        # A beam could go through the weights of a layer once for all its prefixes.
        "beam": Work(
            dim * weights.user.shape[1] + active * padded + visits * padded * EXPONENTIAL,
            FLOAT * config.depth * hidden * padded,
        ),
        "gather": Work(lines=beam * (1 + 2 * (1 + FLOAT * (path_items - 1) / LINE))),
        "rerank": Work(candidates * dim, rows=candidates),
    }


def _active_units(model: DeepRetrieval, users: Floats, beam: int) -> tuple[float, float]:
    """Per query: prefixes whose children are scored, and their hidden units above zero. Idle ones add nothing."""
    weights = model.retriever.structure
    hidden = weights.outputs.shape[1]
    visits, active = 0, 0
    for user in users:
        state = user @ weights.user + weights.user_bias
        for layer in range(weights.depth):
            codes = model.retriever.beam(user, beam, layer)[0]
            nodes = decode_paths(codes, weights.num_nodes, layer) if layer else np.zeros((1, 0), np.int64)
            sums = state[None] + sum(weights.nodes[before, nodes[:, before]] for before in range(layer))
            visits += len(codes)
            active += int((sums[:, layer * hidden : (layer + 1) * hidden] > 0).sum())
    return visits / len(users), active / len(users)


def _fastest(call: Callable[[int], Any], repeats: int) -> float:
    """Seconds of the fastest of the calls 1, 2, ...; call 0 only warms up."""
    call(0)
    spent = []
    for repeat in range(1, repeats + 1):
        begin = time.perf_counter()
        call(repeat)
        spent.append(time.perf_counter() - begin)
    return min(spent)


@njit(cache=True, nogil=True, fastmath=True)
def _sum(values: Floats, rounds: int) -> np.float32:
    total = np.float32(0.0)
    for _ in range(rounds):
        for i in range(len(values)):
            total += values[i]
    return total


@njit(cache=True, nogil=True, fastmath=True)
def _sum_rows(table: Floats, rows: NDArray[np.int64]) -> np.float32:
    total = np.float32(0.0)
    for i in range(len(rows)):
        row = table[rows[i]]
        for k in range(len(row)):
            total += row[k]
    return total


@njit(cache=True, nogil=True, fastmath=True)
def _sum_places(values: Floats, places: NDArray[np.int64]) -> np.float32:
    total = np.float32(0.0)
    for i in range(len(places)):
        total += values[places[i]]
    return total


@njit(cache=True, nogil=True)
def _follow(chain: NDArray[np.int64], place: int, steps: int) -> int:
    for _ in range(steps):
        place = chain[place]
    return place
