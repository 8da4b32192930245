"""The candidates of held-out queries and their features, by which the weights of the final score are fitted.

A catalogue that is sharded by item gives one part per shard, and the whole catalogue one part. So both give the same
pools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex import metrics
from pathdex.data.splits import Queries
from pathdex.kernels.candidates import score_items
from pathdex.kernels.types import Floats, Ints
from pathdex.retrieval.part_search import PartFound
from pathdex.retrieval.retriever import Retriever
from pathdex.retrieval.score_weights import ScoreWeights
from pathdex.training.held_out import SIZES

BUDGETS = (5, 10)
"""Candidates per recommended item for which the weights are fitted."""
LIMIT = max(BUDGETS) * max(SIZES)
"""The most candidates of a query."""
NEVER = np.iinfo(np.int64).max // 2
"""The `path_rank` of an item that is on no path."""


@dataclass(frozen=True)
class Pools:
    """The items that either source brings for each query, the most similar to the history first; arrays (query, item).

    Padded with items that no budget admits.
    """

    scores: NDArray[np.float32]
    """s(x, v)"""
    log_probability: NDArray[np.float32]
    similarity: NDArray[np.float32]
    log_counts: NDArray[np.float32]
    """log(N_v + 1), centred."""
    path_rank: NDArray[np.int64]
    """The place among the items from paths, by log probability; large for other items."""
    hits: NDArray[np.bool_]
    """Whether the item is in the query's truth."""
    truth: NDArray[np.int64]
    """(query,): |truth|"""

    def f_measures(self, weights: ScoreWeights) -> NDArray[np.float64]:
        """F of each query for each of `SIZES`, (query, size): the mean over `BUDGETS` times as many candidates."""
        final = self.scores + np.float32(weights.popularity) * self.log_counts
        if weights.path:
            final = final + np.float32(weights.path) * self.log_probability
        if weights.neighbour:
            similarity = np.log(self.similarity + np.float32(weights.smoothing))
            final = final + np.float32(weights.neighbour) * similarity
        each = [[self._f_measure(final, size, factor * size, weights.share) for size in SIZES] for factor in BUDGETS]
        means: NDArray[np.float64] = np.mean(each, axis=0).T
        return means

    def _f_measure(self, final: NDArray[np.float32], size: int, budget: int, share: float) -> NDArray[np.float64]:
        """(query,): F of the best `size` candidates by their final score."""
        n = min(size, final.shape[1])
        scores = np.where(self.candidates(budget, share), final, -np.inf)
        best = np.argpartition(-scores, n - 1, axis=1)[:, :n]
        found = np.take_along_axis(self.hits & np.isfinite(scores), best, axis=1).sum(axis=1)
        return metrics.f_measure(found / size, found / self.truth)

    def candidates(self, budget: int, share: float) -> NDArray[np.bool_]:
        """The items that a budget admits: what `Retriever.find_candidates` finds."""
        reserved = int(share * budget)
        by_paths = self.path_rank < budget - reserved
        others = ~by_paths & (self.similarity > 0)
        joining = others & (np.cumsum(others, axis=1) <= reserved)
        admitted: NDArray[np.bool_] = joining | (self.path_rank < budget - joining.sum(axis=1)[:, None])
        return admitted


def collect_pools(
    retriever: Retriever, queries: Queries, log_counts: NDArray[np.float32], *, beam: int, recency: float
) -> Pools:
    """The pools of a whole catalogue."""
    rows = []
    for history, truth in zip(queries.history, queries.truth, strict=True):
        state = retriever.encoder.encode(history)
        found = retriever.sources(state, history, beam=beam, recency=recency)
        rows.append(pool_row([pool_part(retriever, state.vector, *found)], truth, log_counts))
    return join_rows(rows, queries)


def pool_part(
    retriever: Retriever, user: Floats, items: Ints, log_probability: Floats, similar_items: Ints, similarity: Floats
) -> PartFound:
    """The items of one part that can be in a pool: those on paths come with their log probabilities."""
    probable = items[_largest(log_probability, items)]
    near = similar_items[_largest(similarity, similar_items)]
    on_paths = np.union1d(probable, near[np.isin(near, items)])
    chosen = np.concatenate([on_paths, np.setdiff1d(near, on_paths)])
    base = score_items(retriever.table, user, chosen, np.zeros(len(chosen), np.float32))
    least = float(log_probability.min()) if len(items) else np.inf
    return PartFound(
        chosen,
        _values_at(on_paths, items, log_probability),
        _values_at(chosen, similar_items, similarity),
        base,
        len(items),
        least,
    )


def pool_row(parts: Sequence[PartFound], truth: NDArray[np.integer], log_counts: NDArray[np.float32]) -> dict[str, Any]:
    """The pool of one query by the names of `Pools`; `parts` have the codes of the whole catalogue."""
    floor = np.float32(min(0.0, *(part.least for part in parts)))
    items, similarity, scores = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("items", "similarity", "base")
    )
    log_probability = np.concatenate(
        [np.append(part.log_probability, np.full(len(part.items) - len(part.log_probability), floor)) for part in parts]
    ).astype(np.float32)
    on_paths = np.concatenate([np.arange(len(part.items)) < len(part.log_probability) for part in parts])
    rank = np.full(len(items), NEVER, np.int64)
    probable = np.flatnonzero(on_paths)
    probable = probable[_largest(log_probability[probable], items[probable])]
    rank[probable] = np.arange(len(probable))
    near = np.flatnonzero(similarity > 0)
    kept = np.union1d(probable, near[_largest(similarity[near], items[near])])
    kept = kept[np.lexsort((items[kept], -similarity[kept]))]
    items = items[kept]
    return {
        "scores": scores[kept],
        "log_probability": log_probability[kept],
        "similarity": similarity[kept],
        "log_counts": log_counts[items],
        "path_rank": rank[kept],
        "hits": np.isin(items, truth),
    }


def join_rows(rows: Sequence[Mapping[str, NDArray[Any]]], queries: Queries) -> Pools:
    """The pools of all queries."""
    width, padding = max(len(row["scores"]) for row in rows), {"path_rank": NEVER}

    def padded(name: str) -> NDArray[Any]:
        array = np.full((len(rows), width), padding.get(name, 0), rows[0][name].dtype)
        for number, row in enumerate(rows):
            array[number, : len(row[name])] = row[name]
        return array

    return Pools(**{name: padded(name) for name in rows[0]}, truth=queries.truth.lengths)


def _largest(values: Floats, items: Ints) -> Ints:
    """The places of the `LIMIT` largest values, largest first, ties by item."""
    return np.lexsort((items, -values))[:LIMIT]


def _values_at(wanted: Ints, items: Ints, values: Floats) -> Floats:
    """The value of each wanted item; 0 if it is not among `items`."""
    found = np.zeros(len(wanted), np.float32)
    if len(items):
        order = np.argsort(items)
        places = order[np.minimum(np.searchsorted(items, wanted, sorter=order), len(items) - 1)]
        known = items[places] == wanted
        found[known] = values[places[known]]
    return found
