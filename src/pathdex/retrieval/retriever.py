"""A user vector to candidates to the best n, one query at a time: the compiled kernels put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.ragged import Ragged
from pathdex.index.paths import decode_paths
from pathdex.index.postings import NO_PATH, Postings
from pathdex.kernels.beam import Trie, beam_search, layer_log_probabilities
from pathdex.kernels.candidates import ALL_ITEMS, NO_ITEMS, PathItems, most_probable, rerank
from pathdex.kernels.compact import compact_items
from pathdex.kernels.layout import as_readonly, entry_point
from pathdex.kernels.neighbours import NO_NEIGHBOURS, Neighbours, Similar, add_similarity, similar_to, similarity_of
from pathdex.kernels.query import (
    NO_ITEM,
    Answers,
    Engine,
    Index,
    Search,
    answer_queries,
    choose_candidates,
    new_engine,
)
from pathdex.kernels.structure import StructureWeights
from pathdex.kernels.types import Floats, Int32s, Ints, Mask
from pathdex.retrieval.beam_plan import LISTED_ITEMS, BeamPlan, Eligible, plan_beam
from pathdex.retrieval.filters import Filters
from pathdex.retrieval.score_weights import ScoreWeights
from pathdex.retrieval.user_state import HistoryEncoder, UserState, weights_under

NO_OFFSETS = as_readonly(np.empty(0), np.int64)
NOT_ENCODED = np.empty((0, 0), np.float32)


@dataclass(frozen=True)
class Candidates:
    """The items that one query scores."""

    items: Ints
    """Distinct eligible items."""
    log_probability: Floats
    """log sum_j p(c_j | x) p(v | c_j) over the paths of each item that the beam found: the index's estimate of
    log p(v | x). An item that only neighbours led to has the lowest value found."""
    similarity: Floats | None = None
    """The sum of each item's similarities to the history's items; None without neighbours."""


class Sources(NamedTuple):
    """The eligible items that paths and neighbours bring for one query."""

    items: Ints
    log_probability: Floats
    similar_items: Ints
    similar_to: Floats
    """The sum of each similar item's similarities to the history's items."""


class Retriever:
    """Finds and reranks candidates in an index of paths.

    Differs from the paper: an item counts on a path by its share of the path's interactions, p(v | c). In the paper all
    items of a path are equal, so a limit on candidates could not choose among them.

    Differs from the paper: with neighbours, items that share users with those of the history join the candidates, and
    their similarity counts in the final score.
    """

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, NDArray[Any]],
        table: Floats,
        postings: Postings,
        log_shares: Floats,
        paths: Ints,
        counts: Ints,
        encode_with_torch: Callable[[Ragged], Floats],
        neighbours: Neighbours | None = None,
        path_weights: Floats | None = None,
    ) -> None:
        """`weights` are the network's by name; `table` is its item table (item, [input | output | bias]).

        `path_weights` are the `log_path_weights`; a shard, which holds only some of the items of a path, has them from
        the whole model.
        """
        self.postings, self.paths, self.counts = postings, paths, counts
        self._path_weights = path_weights
        self.table = as_readonly(table)
        self.encoder = HistoryEncoder(config, weights, self.table, encode_with_torch)
        self.structure = StructureWeights.pack(weights_under("structure.", weights))
        self.trie = Trie.pack(postings.prefixes, postings.children, postings.num_nodes)
        self.on_paths = PathItems.pack(postings.starts, postings.ends, postings.items, log_shares)
        self.neighbours = None if neighbours is None else Neighbours.pack(*neighbours)
        self.dim = config.embedding_dim
        self.weights = ScoreWeights.from_config(config)

    @cached_property
    def _index(self) -> Index:
        neighbours = NO_NEIGHBOURS if self.neighbours is None else self.neighbours
        return Index(self.structure, self.trie, self.on_paths, self.table, self.compact, self.encoder.start, neighbours)

    @cached_property
    def _engine(self) -> Engine:
        assert self.encoder.compiled is not None
        return new_engine(self.encoder.compiled, self._index)

    @cached_property
    def _answer_queries(self) -> Any:
        answers = Answers(np.empty((0, 1), np.int64), np.empty((0, 1), np.float32), np.empty(0, np.int64))
        search = self._search(1, 1, None)
        rows = NO_ITEMS, NO_OFFSETS
        return entry_point(answer_queries, self._engine, search, *rows, *rows, NOT_ENCODED, 0, 0, answers)

    def answers_at_once(self, filters: Filters) -> bool:
        """Whether `answer` can be called: no masks, and a compiled encoder."""
        return self.encoder.compiled is not None and filters.allow is None and filters.where is None

    def answer(
        self,
        histories: Ragged,
        filters: Filters,
        queries: range,
        answers: Answers,
        *,
        n: int,
        beam: int,
        candidates: int | None = None,
    ) -> None:
        """Write the answers to some queries of a batch: the encoder and `best_items` in one call."""
        self._answer_queries(
            self._engine,
            self._search(n, beam, candidates),
            *_flat(histories),
            *_flat(filters.exclude),
            NOT_ENCODED,
            queries.start,
            queries.stop,
            answers,
        )

    def best_items(
        self, state: UserState, filters: Filters, query: int, *, n: int, beam: int, candidates: int | None = None
    ) -> tuple[Ints, Floats, int]:
        """The best `min(n, eligible)` items, best first, their scores, and the number of candidates.

        The result is that of `find_candidates` and `rerank`.
        """
        if self.answers_at_once(filters):
            answers = Answers(np.empty((1, n), np.int64), np.empty((1, n), np.float32), np.empty(1, np.int64))
            self._answer_queries(
                self._engine,
                self._search(n, beam, candidates),
                state.history,
                np.array([0, len(state.history)]),
                NO_ITEMS if filters.exclude is None else np.ascontiguousarray(filters.exclude[query], np.int32),
                NO_OFFSETS,
                state.vector[None],
                0,
                1,
                answers,
            )
            count = np.count_nonzero(answers.items[0] != NO_ITEM)
            return answers.items[0, :count], answers.scores[0, :count], int(answers.candidates[0])
        found = self.find_candidates(state, filters, query, beam=beam, candidates=candidates, min_candidates=n)
        return *self.rerank(state.vector, found, n), len(found.items)

    def _search(self, n: int, beam: int, candidates: int | None) -> Search:
        weights = self.weights
        return Search(
            n,
            beam,
            candidates or 0,
            self.encoder.history_length,
            float(weights.path),
            float(weights.neighbour),
            float(weights.smoothing),
            float(weights.share),
            float(weights.recency),
        )

    @cached_property
    def compact(self) -> Floats:
        """The item vectors in 8 bits, made by the first query that reranks: a pass over the item table."""
        return compact_items(self.table, self.dim)

    @property
    def item_vectors(self) -> Floats:
        """The output vectors y_v (item, dim)."""
        return self.table[:, -self.dim - 1 : -1]

    def search_paths(self, user: Floats, beam: int, depth: int | None = None) -> tuple[Ints, Floats]:
        """The most probable paths in use, or prefixes of `depth` nodes: codes and log p(c | x), best first."""
        depth = self.postings.depth if depth is None else depth
        prefixes = self.postings.prefixes[depth]
        positions, log_p = beam_search(self.structure, self.trie, user, min(beam, len(prefixes)), depth)
        return prefixes[positions], log_p

    def path_log_probabilities(self, user: Floats, paths: Ints) -> Floats:
        """log p(c_d | x, c_1..c_{d-1}) of paths (path,): (path, layer)."""
        order = np.argsort(paths)
        nodes = decode_paths(paths[order], self.postings.num_nodes, self.postings.depth)
        layers = np.empty(nodes.shape, np.float32)
        layers[order] = layer_log_probabilities(self.structure, user, nodes)
        return layers

    def item_log_probabilities(self, user: Floats, items: Ints) -> Floats:
        """log sum_j p(c_j | x) p(v | c_j) over all J paths of each item."""
        paths = self.paths[items]
        log_p = self.path_log_probabilities(user, paths.ravel()).sum(axis=1).reshape(paths.shape)
        each = (
            log_p
            + np.log(self.counts[items] + 1.0)[:, None]
            - self._weights_at(np.searchsorted(self.postings.paths, paths))
        )
        total: Floats = np.logaddexp.reduce(each, axis=1).astype(np.float32)
        return total

    def _weights_at(self, positions: Ints) -> Floats:
        if self._path_weights is not None:
            found: Floats = self._path_weights[positions]
            return found
        return log_path_weights(self.postings, self.counts, self.on_paths.log_shares, positions)

    def find_candidates(
        self,
        state: UserState,
        filters: Filters,
        query: int,
        *,
        beam: int,
        candidates: int | None = None,
        min_candidates: int = 1,
    ) -> Candidates:
        """The eligible items on a user's most probable paths, at most `candidates` of them, the most probable.

        If they are fewer than `min_candidates`, the beam doubles until there are enough or every path has been
        followed. If only few items are eligible, each is scored on its own paths instead. With neighbours, a share of
        the candidates are the items most similar to the history that are not among the others.
        """
        exclude = NO_ITEMS if filters.exclude is None else as_readonly(filters.exclude[query], np.int32)
        eligible = self._eligible(filters.allow_of(query), filters.where_of(query))
        search = self._search(min_candidates, beam, candidates)
        found = self._follow_paths(self._index, search, state, exclude, eligible)
        if found is None:
            found = self._score_listed(state, exclude, eligible, candidates)
        return self._without_similarity(found)

    def _eligible(self, allow: Ints | None, where: Mask | None) -> Eligible:
        if allow is None and where is None:
            return Eligible(ALL_ITEMS, self.postings.num_items, None)
        if allow is not None:
            allow = allow if where is None else allow[where[allow]]
            if len(allow) <= LISTED_ITEMS:
                return Eligible(ALL_ITEMS, len(allow), np.asarray(allow, np.int64))
            where = np.zeros(self.postings.num_items, np.bool_)
            where[allow] = True
        assert where is not None
        count = int(np.count_nonzero(where))
        listed = np.flatnonzero(where) if count <= LISTED_ITEMS else None
        return Eligible(as_readonly(where, np.bool_), count, listed)

    def _follow_paths(
        self, index: Index, search: Search, state: UserState, exclude: Int32s, eligible: Eligible
    ) -> Candidates | None:
        """The eligible items on the best paths and their neighbours; None where scoring all eligible items costs less.

        `search.n` is the minimum number of candidates.
        """
        plan = self._plan_beam(search, eligible)
        if plan is None:
            return None
        enough, items, log_probability, similarity = choose_candidates(
            index, search, state.history, state.vector, exclude, eligible.mask, plan.beam, plan.max_beam
        )
        return Candidates(items, log_probability, similarity) if enough else None

    def _plan_beam(self, search: Search, eligible: Eligible) -> BeamPlan | None:
        """The beams to try; None where scoring all eligible items costs less."""
        if eligible.listed is not None:
            return None
        plan = plan_beam(
            n=search.n,
            beam=search.beam,
            candidates=search.candidates,
            num_paths=len(self.postings),
            num_items=self.postings.num_items,
            paths_per_item=self.paths.shape[1],
            eligible=None if eligible.mask is ALL_ITEMS else eligible.num_items,
        )
        return plan if plan.beam else None

    def trace_candidates(
        self,
        state: UserState,
        filters: Filters,
        query: int,
        *,
        beam: int,
        candidates: int | None = None,
        min_candidates: int = 1,
    ) -> tuple[Candidates, BeamPlan | None]:
        """What `find_candidates` gives, and the first and the last beam; None if eligible items are scored one by one.

        Doubles the beam here and not in compiled code, to see it.
        """
        exclude = NO_ITEMS if filters.exclude is None else as_readonly(filters.exclude[query], np.int32)
        eligible = self._eligible(filters.allow_of(query), filters.where_of(query))
        search = self._search(min_candidates, beam, candidates)
        plan = self._plan_beam(search, eligible)
        width, most = (0, -1) if plan is None else plan
        while width <= most:
            enough, items, log_probability, similarity = choose_candidates(
                self._index, search, state.history, state.vector, exclude, eligible.mask, width, width
            )
            if enough:
                found = Candidates(items, log_probability, similarity)
                return self._without_similarity(found), BeamPlan(plan.beam if plan else width, width)
            width *= 2
        return self._without_similarity(self._score_listed(state, exclude, eligible, candidates)), None

    def _without_similarity(self, found: Candidates) -> Candidates:
        return found if self.neighbours is not None else replace(found, similarity=None)

    def _score_listed(
        self, state: UserState, exclude: Int32s, eligible: Eligible, candidates: int | None
    ) -> Candidates:
        """All eligible items on their own paths; no others can join."""
        listed = np.flatnonzero(eligible.mask) if eligible.listed is None else eligible.listed
        listed = listed[self.paths[listed, 0] != NO_PATH]
        items = listed[~np.isin(listed, exclude)]
        log_probability = self.item_log_probabilities(state.vector, items)
        if candidates is not None:
            items, log_probability = most_probable(items, log_probability, candidates)
        if self.neighbours is None:
            return Candidates(items, log_probability)
        return Candidates(items, log_probability, similarity_of(self._similar_to(state, self.weights.recency), items))

    def _similar_to(self, state: UserState, recency: float) -> Similar:
        assert self.neighbours is not None
        latest = as_readonly(state.history[-self.encoder.history_length :], np.int32)
        similar: Similar = similar_to(self.neighbours, latest, float(recency))
        return similar

    def sources(self, state: UserState, exclude: NDArray[np.integer], *, beam: int, recency: float) -> Sources:
        """What paths and neighbours each bring for a user, before any limit."""
        index = self._index._replace(neighbours=NO_NEIGHBOURS)
        everything = Eligible(ALL_ITEMS, self.postings.num_items, None)
        found = self._follow_paths(
            index, self._search(1, beam, None), state, as_readonly(exclude, np.int32), everything
        )
        assert found is not None
        if self.neighbours is None:
            return Sources(found.items, found.log_probability, np.empty(0, np.int64), np.empty(0, np.float32))
        similar = self._similar_to(state, recency)
        left = ~np.isin(similar.items, exclude)
        return Sources(found.items, found.log_probability, similar.items[left], similar.similarity[left])

    def reranker_scores(self, user: Floats, items: Ints) -> Floats:
        """s(x, v) = x . y_v + b_v of some items."""
        scores: Floats = self.item_vectors[items] @ user + self.table[items, -1]
        return scores

    def rerank(self, user: Floats, found: Candidates, n: int) -> tuple[Ints, Floats]:
        """The best n candidates, best first: items and scores.

        The score is s(x, v) + path log p(v | x), with neighbours also + neighbour log(smoothing + similarity), where
        path, neighbour and smoothing are `weights`.
        """
        weights = self.weights
        prior = np.float32(weights.path) * found.log_probability
        if found.similarity is not None:
            add_similarity(prior, found.similarity, weights.neighbour, weights.smoothing)
        best: tuple[Ints, Floats] = rerank(self.table, self.compact, user, found.items, prior, n)
        return best


def log_path_weights(postings: Postings, counts: Ints, log_shares: Floats, positions: Ints) -> Floats:
    """The log of the sum of N_v + 1 over the items of paths, from the share of the first item of each."""
    first = postings.starts[positions]
    weights: Floats = np.log(counts[postings.items[first]] + 1.0) - log_shares[first]
    return weights


def _flat(rows: Ragged | None) -> tuple[Int32s, Ints]:
    """Values and offsets as compiled code reads them; both are empty for no rows."""
    if rows is None:
        return NO_ITEMS, NO_OFFSETS
    return np.ascontiguousarray(rows.values, np.int32), np.ascontiguousarray(rows.offsets, np.int64)
