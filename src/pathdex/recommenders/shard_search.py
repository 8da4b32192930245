"""The answers of a sharded model without a router: shards find candidates, and these steps merge them.

The shards are in this process, or each with one worker of a training. A router does the same over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged, take_slices
from pathdex.data.vocabulary import UNKNOWN
from pathdex.kernels.candidates import ALL_ITEMS, NO_COMPACT, gather_items
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.types import Floats, Ints
from pathdex.recommenders.score_pools import pool_part
from pathdex.recommenders.shard import DeepRetrievalShard, ShardFacts
from pathdex.recommenders.whole_model import KnownHistory, WholeModel
from pathdex.retrieval.part_merge import Chosen, merge_parts, rank_chosen
from pathdex.retrieval.part_search import PartFound, PartQuery, find_part
from pathdex.retrieval.ranking import Ranking, row_blocks

BATCH = 64
"""Queries that are sent to all shards at once."""

ShardWork = Callable[[DeepRetrievalShard], tuple[NDArray[Any], ...]]
"""What a shard is asked for; all its arrays may be empty."""


class Shards(Protocol):
    """All shards of a model, wherever they are."""

    def ask(self, work: ShardWork) -> list[tuple[NDArray[Any], ...]]:
        """The arrays that `work` returns for each shard."""


class WholeQuery(NamedTuple):
    """A query in the codes of the whole model, with the paths to follow."""

    user: Floats
    positions: Ints
    log_p: Floats
    exclude: Ints
    similar: Ints
    similarity: Floats


class ShardSearch:
    """Answers histories of codes with all shards of a model."""

    def __init__(self, whole: WholeModel, shards: Shards) -> None:
        self.whole, self.shards = whole, shards

    @classmethod
    def of(cls, shard: DeepRetrievalShard, shards: Shards) -> ShardSearch:
        """With the network and the paths of any of the shards."""
        return cls(whole_of(shard), shards)

    def rank(
        self,
        histories: Ragged,
        n: int,
        exclude: Ragged | None = None,
        *,
        beam: int | None = None,
        candidates: int | None = None,
    ) -> Ranking:
        """The best n items for each history, as `DeepRetrieval.rank`; collective if the shards are."""
        found = Ranking(
            np.full((len(histories), n), UNKNOWN, np.int64),
            np.full((len(histories), n), -np.inf, np.float32),
            np.zeros(len(histories), np.int64),
        )
        beam, limit = self.whole.beam_of(n, beam, candidates)
        for rows in row_blocks(len(histories), BATCH):
            left = None if exclude is None else exclude.take(rows)
            self._rank_batch(rows, histories.take(rows), n, left, beam, limit, found)
        return found

    def pool_parts(self, histories: Ragged, recency: float, beam: int) -> Iterator[list[PartFound]]:
        """The `pool_part` of every shard for each history; collective if the shards are."""
        for rows in row_blocks(len(histories), BATCH):
            batch = histories.take(rows)
            known = self._known(batch)
            queries = [self._query(history, seen, recency) for history, seen in zip(known, batch, strict=True)]
            yield from self._enough(queries, _pool_part, lambda parts: any(part.total for part in parts), beam)

    def _rank_batch(
        self, rows: Ints, histories: Ragged, n: int, exclude: Ragged | None, beam: int, limit: int, found: Ranking
    ) -> None:
        whole = self.whole
        nothing = np.empty(0, np.int64)
        queries = [
            self._query(history, nothing if exclude is None else exclude[row])
            for row, history in enumerate(self._known(histories))
        ]

        def find(shard: DeepRetrievalShard, query: WholeQuery) -> PartFound:
            return find_part(shard.retriever, whole.weights, self._part_query(shard.facts, query, n, limit))

        def merged(parts: Sequence[PartFound]) -> Chosen:
            return merge_parts(parts, whole.weights, limit, neighbours=whole.facts.neighbours, listed=False)

        for row, parts in zip(
            rows, self._enough(queries, find, lambda parts: merged(parts).total >= n, beam), strict=True
        ):
            chosen = merged(parts)
            items, scores = rank_chosen(chosen, whole.weights, n, neighbours=whole.facts.neighbours)
            found.items[row, : len(items)], found.scores[row, : len(items)] = items, scores
            found.candidates[row] = chosen.total

    def _enough(
        self,
        queries: Sequence[WholeQuery],
        find: Callable[[DeepRetrievalShard, WholeQuery], PartFound],
        is_enough: Callable[[Sequence[PartFound]], bool],
        beam: int,
    ) -> list[list[PartFound]]:
        """What the shards find for each query, with a beam that doubles until it is enough."""
        answers: list[list[PartFound]] = [[] for _ in queries]
        left = list(range(len(queries)))
        while left:
            asked = [_followed(self.whole, queries[row], beam) for row in left]
            for row, parts in zip(left, self._ask(asked, find), strict=True):
                answers[row] = parts
            left = [row for row in left if beam < self.whole.num_paths and not is_enough(answers[row])]
            beam *= 2
        return answers

    def _ask(
        self, queries: Sequence[WholeQuery], find: Callable[[DeepRetrievalShard, WholeQuery], PartFound]
    ) -> list[list[PartFound]]:
        """By query, what each shard finds."""

        def work(shard: DeepRetrievalShard) -> tuple[NDArray[Any], ...]:
            found = [find(shard, query) for query in queries]
            return _packed([one._replace(items=shard.facts.whole(one.items)) for one in found])

        each = [_unpacked(*arrays) for arrays in self.shards.ask(work)]
        return [list(parts) for parts in zip(*each, strict=True)]

    def _query(self, history: KnownHistory, exclude: NDArray[np.integer], recency: float | None = None) -> WholeQuery:
        similar, similarity = np.empty(0, np.int64), np.empty(0, np.float32)
        if self.whole.facts.neighbours:
            similar, similarity = self.whole.similar(history, recency)
        nothing = np.empty(0, np.int64), np.empty(0, np.float32)
        return WholeQuery(self.whole.encode(history), *nothing, np.asarray(exclude, np.int64), similar, similarity)

    def _part_query(self, facts: ShardFacts, query: WholeQuery, n: int, limit: int) -> PartQuery:
        reserved = self.whole.reserved(limit, query.positions) if facts.neighbours else 0
        similar, similarity = _own(facts, query)
        return PartQuery(
            query.user,
            query.positions,
            query.log_p,
            facts.own(query.exclude),
            None,
            similar,
            similarity,
            n,
            limit,
            reserved,
            facts.neighbours,
        )

    def _known(self, histories: Ragged) -> list[KnownHistory]:
        """The histories with what the shards hold of their latest items."""
        whole, latest = self.whole, histories.last(self.whole.config.history_length)
        wanted = np.unique(latest.values).astype(np.int64)
        parts = self.shards.ask(lambda shard: _item_arrays(shard, wanted))
        codes, rows, lengths, near, similarities = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        starts, order = np.cumsum(lengths) - lengths, np.argsort(codes)
        rows = rows.reshape(-1, whole.config.embedding_dim)
        found = []
        for history, own in zip(histories, latest, strict=True):
            distinct = np.unique(own).astype(np.int64)
            places = order[np.searchsorted(codes, distinct, sorter=order)]
            lists = [take_slices(one, starts[places], lengths[places])[0] for one in (near, similarities)]
            found.append(KnownHistory(history.astype(np.int64), distinct, rows[places], lengths[places], *lists))
        return found


def whole_of(shard: DeepRetrievalShard) -> WholeModel:
    """What a shard knows of the whole model."""
    state = shard.model_state
    return WholeModel(shard.facts, state.config, state.weights, shard.postings.paths, shard.path_sizes)


def _followed(whole: WholeModel, query: WholeQuery, beam: int) -> WholeQuery:
    positions, log_p = whole.follow(query.user, beam)
    return query._replace(positions=positions, log_p=log_p)


def _own(facts: ShardFacts, query: WholeQuery) -> tuple[Ints, Floats]:
    """The neighbours that a shard holds, in its codes."""
    held = query.similar % facts.count == facts.index
    return query.similar[held] // facts.count, query.similarity[held]


def _pool_part(shard: DeepRetrievalShard, query: WholeQuery) -> PartFound:
    exclude = shard.facts.own(query.exclude)
    items, log_probability = gather_items(
        shard.retriever.on_paths,
        query.positions,
        query.log_p,
        as_readonly(exclude, np.int32),
        ALL_ITEMS,
        NO_COMPACT,
    )
    similar, similarity = _own(shard.facts, query)
    left = ~np.isin(similar, exclude)
    return pool_part(shard.retriever, query.user, items, log_probability, similar[left], similarity[left])


def _item_arrays(shard: DeepRetrievalShard, codes: Ints) -> tuple[NDArray[Any], ...]:
    """Of those items that a shard holds: codes in the whole model, input vectors, and lists of neighbours."""
    own, near = shard.facts.own(codes), shard.near
    rows = np.ascontiguousarray(shard.retriever.table[own, : shard.config.embedding_dim])
    if not shard.facts.neighbours:
        nothing = np.zeros(len(own), np.int64), np.empty(0, np.int32), np.empty(0, np.float32)
        return shard.facts.whole(own), rows, *nothing
    starts, lengths = near.offsets[own], near.offsets[own + 1] - near.offsets[own]
    lists = [take_slices(one, starts, lengths)[0] for one in (near.items, near.similarities)]
    return shard.facts.whole(own), rows, lengths, *lists


def _packed(parts: Sequence[PartFound]) -> tuple[NDArray[Any], ...]:
    """Some `PartFound` in a few arrays."""
    counts = [(len(one.items), len(one.log_probability), one.total) for one in parts]
    joined: Mapping[str, NDArray[Any]] = {
        name: np.concatenate([getattr(one, name) for one in parts])
        for name in ("items", "log_probability", "similarity", "base")
    }
    return np.array(counts, np.int64), np.array([one.least for one in parts]), *joined.values()


def _unpacked(
    counts: Ints, least: NDArray[np.float64], items: Ints, log_probability: Floats, similarity: Floats, base: Floats
) -> list[PartFound]:
    ends, on_paths = np.cumsum(counts[:, 0]), np.cumsum(counts[:, 1])
    found = []
    for row, (count, own, total) in enumerate(counts.tolist()):
        span, first = slice(ends[row] - count, ends[row]), slice(on_paths[row] - own, on_paths[row])
        arrays = items[span], log_probability[first], similarity[span], base[span]
        found.append(PartFound(*arrays, total, float(least[row])))
    return found
