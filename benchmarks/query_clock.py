"""One query with a clock between its parts, all in one compiled call.

Called one by one from Python, the parts together would take longer than the whole query, since numba's dispatcher
unpacks the arrays of a model at every call.
"""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np
from numba import njit

from pathdex.data.ragged import Ragged
from pathdex.kernels.beam import beam_search
from pathdex.kernels.candidates import ALL_ITEMS, gather, rerank
from pathdex.kernels.encoders import encode_history
from pathdex.kernels.layout import as_readonly, entry_point
from pathdex.kernels.neighbours import add_similarity, join_neighbours, neighbour_entries
from pathdex.kernels.query import Engine, Search
from pathdex.kernels.types import Floats, Int32s, Ints
from pathdex.retrieval.retriever import Retriever

PARTS = ("encode", "beam", "gather", "rerank")
CLOCK = time.CLOCK_MONOTONIC
SECOND = 1_000_000_000

_clock_gettime = ctypes.CDLL(None).clock_gettime
_clock_gettime.argtypes, _clock_gettime.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_int


@njit(nogil=True, inline="always")
def _nanoseconds(timespec: Ints) -> int:
    _clock_gettime(CLOCK, timespec.ctypes.data)
    return SECOND * timespec[0] + timespec[1]


@njit(nogil=True)  # Not cached: numba keeps no addresses of C functions on disk.
def _timed_query(engine: Engine, search: Search, history: Int32s, exclude: Int32s, ticks: Ints) -> tuple[Ints, Floats]:
    """The answer of `answer_queries` to one query whose beam need not double; `ticks` are the times between parts."""
    encoder, index, timespec = engine.encoder, engine.index, np.empty(2, np.int64)
    latest = history[-search.history_length :]
    ticks[0] = _nanoseconds(timespec)
    _, user, _ = encode_history(encoder, index.table, index.start, history, search.history_length)
    ticks[1] = _nanoseconds(timespec)
    paths = len(index.on_paths.starts)
    positions, log_p = beam_search(index.structure, index.trie, user, min(search.beam, paths), index.structure.depth)
    ticks[2] = _nanoseconds(timespec)
    room = neighbour_entries(index.neighbours, latest)
    found = gather(index.on_paths, positions, log_p, exclude, ALL_ITEMS, index.compact, room)
    items, log_probability, similarity = join_neighbours(
        found,
        index.neighbours,
        latest,
        search.neighbour_recency,
        ALL_ITEMS,
        search.neighbour_share,
        search.candidates,
    )
    ticks[3] = _nanoseconds(timespec)
    prior = np.float32(search.path_weight) * log_probability
    if len(index.neighbours.offsets):
        add_similarity(prior, similarity, search.neighbour_weight, search.neighbour_smoothing)
    best, scores = rerank(index.table, index.compact, user, items, prior, search.n)
    ticks[4] = _nanoseconds(timespec)
    return best, scores


class TimedQuery:
    """Calls queries of one model and returns the nanoseconds of their parts with the answer."""

    def __init__(self, retriever: Retriever, *, n: int, beam: int) -> None:
        self._engine, self._search = retriever._engine, retriever._search(n, beam, None)
        self._ticks = np.zeros(len(PARTS) + 1, np.int64)
        history = as_readonly(np.zeros(0), np.int32)
        self._call: Any = entry_point(_timed_query, self._engine, self._search, history, history, self._ticks)

    def __call__(self, history: Ragged) -> tuple[Ints, Ints, Floats]:
        """Nanoseconds by part, items and scores. What was seen is excluded."""
        seen = as_readonly(history[0], np.int32)
        items, scores = self._call(self._engine, self._search, seen, seen, self._ticks)
        return np.diff(self._ticks), items, scores
