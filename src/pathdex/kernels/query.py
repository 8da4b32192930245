"""Whole queries in one compiled call: encode, follow paths, gather, rerank.

Calls from Python cost microseconds each, most of them for handing over arrays. So a batch of queries, or a single one,
is one call, and the arrays of a model are handed over once, when its `Engine` is made. Queries with masks take the same
steps one by one in `pathdex.retrieval.retriever`.
"""

# mypy: disallow-untyped-decorators=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.experimental import structref

from pathdex.kernels.beam import Trie, beam_search
from pathdex.kernels.candidates import ALL_ITEMS, PathItems, gather, rerank
from pathdex.kernels.encoders import TOGETHER, Encoder, encode_histories
from pathdex.kernels.neighbours import Neighbours, add_similarity, join_neighbours, neighbour_entries
from pathdex.kernels.prefetch import ROW_LINES, prefetch_lines
from pathdex.kernels.structure import StructureWeights
from pathdex.kernels.types import Floats, Int32s, Ints, Mask

NO_ITEM = -1
"""Fills the rest of an answer with fewer items."""


class Index(NamedTuple):
    """The arrays that queries read, besides the encoder."""

    structure: StructureWeights
    trie: Trie
    on_paths: PathItems
    table: Floats
    """The item table (item, [input | output | bias])."""
    compact: Floats
    """The `compact_items` of the table."""
    start: Floats
    """The input vector before a history."""
    neighbours: Neighbours
    """`NO_NEIGHBOURS` if the model has none."""


@structref.register
class _EngineType(types.StructRef):
    """The type of `Engine` in compiled code."""


class Engine(structref.StructRefProxy):
    """An encoder and an `Index` in the memory of compiled code, which keeps their arrays alive."""

    encoder: Encoder
    index: Index


structref.define_boxing(_EngineType, Engine)
structref.define_constructor(Engine, _EngineType, ["encoder", "index"])
structref.define_attributes(_EngineType)


@njit(cache=True)
def new_engine(encoder: Encoder, index: Index) -> Engine:
    """Hand the arrays of a model over to compiled code."""
    return Engine(encoder, index)


class Search(NamedTuple):
    """What a query asks for."""

    n: int
    beam: int
    candidates: int
    """The maximum number of candidates; 0 for no limit."""
    history_length: int
    path_weight: float
    neighbour_weight: float
    neighbour_smoothing: float
    neighbour_share: float
    neighbour_recency: float


class Answers(NamedTuple):
    """Written by `answer_queries`: one row per query."""

    items: Ints
    """(query, n) best first, then `NO_ITEM`."""
    scores: Floats
    candidates: Ints


@njit(cache=True, nogil=True)
def answer_queries(
    engine: Engine,
    search: Search,
    histories: Int32s,
    history_offsets: Ints,
    exclude: Int32s,
    exclude_offsets: Ints,
    users: Floats,
    first: int,
    end: int,
    answers: Answers,
) -> None:
    """Answer the queries `first` .. `end` - 1 of a batch. Without offsets, `exclude` is the same for all.

    `users` (query, dim) are the encoded histories; if empty, they are encoded here.
    """
    encoder, index = engine.encoder, engine.index
    for begin in range(first, end, TOGETHER):
        stop = min(begin + TOGETHER, end)
        if len(users):
            encoded = users[begin:stop]
        else:
            offsets = history_offsets[begin : stop + 1]
            _, encoded, _ = encode_histories(
                encoder, index.table, index.start, histories, offsets, search.history_length
            )
        for query in range(begin, stop):
            if query + TOGETHER < end:
                # The rows of the next histories arrive while these queries are answered.
                for item in histories[history_offsets[query + TOGETHER] : history_offsets[query + TOGETHER + 1]]:
                    prefetch_lines(index.table, item, ROW_LINES)
            out = exclude
            if len(exclude_offsets):
                out = exclude[exclude_offsets[query] : exclude_offsets[query + 1]]
            history = histories[history_offsets[query] : history_offsets[query + 1]]
            items, scores, count = _answer(index, search, history, encoded[query - begin], out)
            for i in range(len(items)):
                answers.items[query, i], answers.scores[query, i] = items[i], scores[i]
            for i in range(len(items), answers.items.shape[1]):
                answers.items[query, i], answers.scores[query, i] = NO_ITEM, -np.inf
            answers.candidates[query] = count


@njit(cache=True, nogil=True, inline="always")  # Compiled on its own, it would double the time to compile queries.
def _answer(index: Index, search: Search, history: Int32s, user: Floats, exclude: Int32s) -> tuple[Ints, Floats, int]:
    paths = len(index.on_paths.starts)
    _, items, log_probability, similarity = choose_candidates(
        index, search, history, user, exclude, ALL_ITEMS, search.beam, 2 * paths
    )
    prior = np.float32(search.path_weight) * log_probability
    if len(index.neighbours.offsets):
        add_similarity(prior, similarity, search.neighbour_weight, search.neighbour_smoothing)
    best, scores = rerank(index.table, index.compact, user, items, prior, search.n)
    return best, scores, len(items)


@njit(cache=True, nogil=True)
def choose_candidates(
    index: Index, search: Search, history: Int32s, user: Floats, exclude: Int32s, mask: Mask, beam: int, max_beam: int
) -> tuple[bool, Ints, Floats, Floats]:
    """The items to rerank, from paths and neighbours, their log probabilities and similarities.

    An empty `mask` allows all items. If fewer than `search.n` are eligible, the beam doubles until there are enough or
    it holds every path. The first result is False if the beam would have to exceed `max_beam`.
    """
    paths, latest = len(index.on_paths.starts), history[-search.history_length :]
    room = neighbour_entries(index.neighbours, latest)
    while True:
        positions, log_p = beam_search(index.structure, index.trie, user, min(beam, paths), index.structure.depth)
        found = gather(index.on_paths, positions, log_p, exclude, mask, index.compact, room)
        items, log_probability, similarity = join_neighbours(
            found,
            index.neighbours,
            latest,
            search.neighbour_recency,
            mask,
            search.neighbour_share,
            search.candidates,
        )
        enough = len(items) >= search.n or beam >= paths
        if enough or 2 * beam > max_beam:
            return enough, items, log_probability, similarity
        beam *= 2
