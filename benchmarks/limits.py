"""Lower bounds for the time of a query on this machine: multiply-adds, cache and memory.

A part of a query takes at least its multiply-adds at the peak rate of one core, the reads of weights that do not fit
the first-level cache, and the random reads of rows and lines from memory. The peaks are measured, not taken from a data
sheet.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numba import njit

from pathdex.index.paths import decode_paths
from pathdex.kernels.types import Floats, Ints
from pathdex.recommenders.deep_retrieval import DeepRetrieval

LINE = 64
"""Bytes of a cache line."""
FLOAT = 4
EXPONENTIAL = 8
"""The cost of an exponential in multiply-adds: range reduction, a polynomial of degree 5, scaling."""
GATES = 3
"""Matrices of a GRU per side."""
INNER_BYTES, OUTER_BYTES = 1 << 17, 1 << 29
"""Sizes that fit the second-level cache, and only memory."""
INNER_ROUNDS = 1000
READS = 100_000
"""Random reads in one measurement."""


@dataclass(frozen=True)
class Peaks:
    """Peak rates of one core of this machine."""

    multiply_adds: float
    """float32 multiply-adds per second, in a product of matrices that fit the cache."""
    cache_bytes: float
    """Bytes per second from 128 KB, read repeatedly."""
    memory_bytes: float
    """Bytes per second from 512 MB, read in order."""
    row_seconds: float
    """Per random read of an item row, with many independent reads."""
    line_seconds: float
    """Per random read of one number, with many independent reads."""
    latency_seconds: float
    """Per random read of one number whose address the read before it gives."""

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Work:
    """The work of one part of a query."""

    multiply_adds: float = 0.0
    cache_bytes: float = 0.0
    rows: float = 0.0
    lines: float = 0.0

    def limits(self, peaks: Peaks) -> dict[str, float]:
        """The minimal microseconds of each kind of work; the part takes at least the largest of them."""
        return {
            "arithmetic": 1e6 * self.multiply_adds / peaks.multiply_adds,
            "cache": 1e6 * self.cache_bytes / peaks.cache_bytes,
            "memory": 1e6 * (self.rows * peaks.row_seconds + self.lines * peaks.line_seconds),
        }


def measure_peaks(table: Floats, *, repeats: int = 7) -> Peaks:
    """Measure on one thread; `table` is the item table of the model."""
    generator = np.random.default_rng(2)
    squares = [generator.standard_normal((size, size), dtype=np.float32) for size in (192, 256, 384)]
    multiply_adds = max(len(one) ** 3 / _fastest(lambda _, one=one: one @ one, repeats) for one in squares)
    inner, large = np.ones(INNER_BYTES // FLOAT, np.float32), np.ones(OUTER_BYTES // FLOAT, np.float32)
    # Other addresses every time, or the second read would hit the cache.
    rows = generator.integers(0, len(table), (repeats + 1, READS))
    positions = generator.integers(0, len(large), (repeats + 1, READS))
    order = generator.permutation(OUTER_BYTES // 32)
    chain = np.empty(len(order), np.int64)
    chain[order] = np.roll(order, -1)
    return Peaks(
        multiply_adds,
        INNER_ROUNDS * inner.nbytes / _fastest(lambda _: _sum(inner, INNER_ROUNDS), repeats),
        large.nbytes / _fastest(lambda _: _sum(large, 1), repeats),
        _fastest(lambda repeat: _sum_rows(table, rows[repeat]), repeats) / READS,
        _fastest(lambda repeat: _sum_at(large, positions[repeat]), repeats) / READS,
        _fastest(lambda repeat: _follow(chain, order[repeat * READS], READS), repeats) / READS,
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
        # Inputs are known ahead, so their weights could be read once; the recurrent ones are read again at each step.
        "encode": Work(2 * side * inputs + 3 * dim * dim, FLOAT * side * (inputs + 1), rows=inputs),
        # A beam could read the weights of a layer once for all its prefixes.
        "beam": Work(
            dim * weights.user.shape[1] + active * padded + visits * padded * EXPONENTIAL,
            FLOAT * config.depth * hidden * padded,
        ),
        "gather": Work(lines=beam * (1 + 2 * (1 + FLOAT * (path_items - 1) / LINE))),
        "rerank": Work(candidates * dim, rows=candidates),
    }


def _active_units(model: DeepRetrieval, users: Floats, beam: int) -> tuple[float, float]:
    """Per query: prefixes whose children are scored, and their hidden units above zero; the others add nothing."""
    weights = model.retriever.structure
    hidden = weights.outputs.shape[1]
    visits, active = 0, 0
    for user in users:
        state = user @ weights.user + weights.user_bias
        for layer in range(weights.depth):
            codes = model.retriever.search_paths(user, beam, layer)[0]
            nodes = decode_paths(codes, weights.num_nodes, layer) if layer else np.zeros((1, 0), np.int64)
            sums = state[None] + sum(weights.nodes[before, nodes[:, before]] for before in range(layer))
            visits += len(codes)
            active += int((sums[:, layer * hidden : (layer + 1) * hidden] > 0).sum())
    return visits / len(users), active / len(users)


def _fastest(call: Callable[[int], Any], repeats: int) -> float:
    """Seconds of the fastest of the calls 1, 2, ...; call 0 warms up."""
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
def _sum_rows(table: Floats, rows: Ints) -> np.float32:
    total = np.float32(0.0)
    for i in range(len(rows)):
        row = table[rows[i]]
        for k in range(len(row)):
            total += row[k]
    return total


@njit(cache=True, nogil=True, fastmath=True)
def _sum_at(values: Floats, positions: Ints) -> np.float32:
    total = np.float32(0.0)
    for i in range(len(positions)):
        total += values[positions[i]]
    return total


@njit(cache=True, nogil=True)
def _follow(chain: Ints, position: int, steps: int) -> int:
    for _ in range(steps):
        position = chain[position]
    return position
