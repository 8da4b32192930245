"""Fit the weights of the final score, and the share of candidates from neighbours, on held-out queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex import metrics
from pathdex.config import Config
from pathdex.data.splits import Queries
from pathdex.retrieval.retriever import Retriever
from pathdex.retrieval.score_weights import ScoreWeights, set_weights
from pathdex.training.held_out import SIZES

BUDGETS = (5, 10)
"""Candidates per recommended item for which the weights are fitted."""
GRID: dict[str, tuple[float, ...]] = {
    "neighbour": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    "recency": (0.0, 0.25, 0.5, 1.0),
    "share": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    "smoothing": (0.1, 0.02, 0.005, 0.001, 0.0002),
    "path": (0.0, 0.15, 0.3, 0.6, 1.0, 1.5),
    "popularity": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
}
"""Values to try, in the order in which they are tried."""
POPULARITY = "popularity"
NEIGHBOURS_ONLY = ("neighbour", "recency", "share", "smoothing")
SWEEPS = 2
SURE = 0.5
"""A change must gain this many standard errors of its paired differences."""
WORTH = 0.005
"""Neighbours must gain at least this share to be kept, since they cost time and memory."""


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
    """The candidates of each query and their features."""
    limit = max(BUDGETS) * max(SIZES)
    rows = [
        _pool(retriever, history, truth, log_counts, beam, limit, recency)
        for history, truth in zip(queries.history, queries.truth, strict=True)
    ]
    width = max(len(row["scores"]) for row in rows)
    empty = {"path_rank": np.iinfo(np.int64).max // 2}

    def padded(name: str) -> NDArray[Any]:
        kind = rows[0][name].dtype
        array = np.full((len(rows), width), empty.get(name, 0), kind)
        for number, row in enumerate(rows):
            array[number, : len(row[name])] = row[name]
        return array

    names = ("scores", "log_probability", "similarity", "log_counts", "path_rank", "hits")
    return Pools(**{name: padded(name) for name in names}, truth=queries.truth.lengths)


def _pool(
    retriever: Retriever,
    history: NDArray[np.int32],
    truth: NDArray[np.int32],
    log_counts: NDArray[np.float32],
    beam: int,
    limit: int,
    recency: float,
) -> dict[str, NDArray[Any]]:
    state = retriever.encoder.encode(history)
    sources = retriever.sources(state, history, beam=beam, recency=recency)
    by_probability = np.argsort(-sources.log_probability, kind="stable")
    by_similarity = np.argsort(-sources.similar_to, kind="stable")[:limit]
    items = np.union1d(sources.items[by_probability[:limit]], sources.similar_items[by_similarity])
    place = {item: rank for rank, item in enumerate(sources.items[by_probability].tolist())}
    ranks = np.array([place.get(item, len(place)) for item in items.tolist()], np.int64)
    floor = sources.log_probability.min(initial=0.0)
    probability = np.append(sources.log_probability[by_probability], floor)[ranks]
    near = dict(zip(sources.similar_items.tolist(), sources.similar_to.tolist(), strict=True))
    similarity = np.array([near.get(item, 0.0) for item in items.tolist()], np.float32)
    order = np.argsort(-similarity, kind="stable")
    items, ranks = items[order], ranks[order]
    ranks[ranks >= len(place)] = np.iinfo(np.int64).max // 2
    return {
        "scores": retriever.reranker_scores(state.vector, items),
        "log_probability": probability[order].astype(np.float32),
        "similarity": similarity[order],
        "log_counts": log_counts[items],
        "path_rank": ranks,
        "hits": np.isin(items, truth),
    }


@dataclass(frozen=True)
class Fitted:
    """Weights, and F at each size with these and other weights."""

    weights: ScoreWeights
    neighbours: bool
    """Whether neighbours are worth their cost."""
    figures: Mapping[str, list[float]]


def fit_weights(pools: Mapping[float, Pools], start: ScoreWeights, free: set[str], *, neighbours_fixed: bool) -> Fitted:
    """The weights that maximize F on the pools, by coordinate ascent from several starts; `free` names may change.

    `pools` holds those of each `recencies`.

    The figure is the mean of F over the sizes, each relative to that of `start`. If `neighbours_fixed`, neighbours are
    kept even if they do not help.
    """
    search = _Search(pools, start, free)
    encoder = _allowed(ScoreWeights(path=0.0, neighbour=0.0, share=0.0), start, free)
    # The popularity weight becomes part of the item bias, so it has to suit the encoder alone.
    popularity = search.ascend([encoder], tuple(name for name in GRID if name != POPULARITY)).popularity
    encoder, first = replace(encoder, popularity=popularity), replace(start, popularity=popularity)
    rest = free - {POPULARITY}
    similar = _allowed(ScoreWeights(path=0.0, neighbour=8.0, smoothing=0.001, share=0.8), first, rest)
    plain = _allowed(replace(first, neighbour=0.0, share=0.0), first, rest)
    alone = search.ascend([encoder, plain], (POPULARITY, *NEIGHBOURS_ONLY))
    best = search.ascend([first, alone, similar], (POPULARITY,))
    gain = search.figure(best).mean() / max(search.figure(alone).mean(), 1e-9) - 1
    keep = neighbours_fixed or gain > WORTH
    weights = best if keep else alone
    return Fitted(
        weights,
        keep,
        {
            "fitted": search.means(weights),
            "encoder alone": search.means(encoder),
            "without neighbours": search.means(alone),
            "default weights": search.means(start),
        },
    )


def _allowed(wanted: ScoreWeights, start: ScoreWeights, free: set[str]) -> ScoreWeights:
    """`wanted`, but only the free weights differ from `start`."""
    return replace(start, **{name: getattr(wanted, name) for name in free})


class _Search:
    def __init__(self, pools: Mapping[float, Pools], start: ScoreWeights, free: set[str]) -> None:
        self.pools, self.free = pools, free
        self.known: dict[ScoreWeights, NDArray[np.float64]] = {}
        self.scale = np.maximum(self.f(start).mean(axis=0), 1e-9)

    def f(self, weights: ScoreWeights) -> NDArray[np.float64]:
        if weights not in self.known:
            self.known[weights] = self.pools[weights.recency].f_measures(weights)
        return self.known[weights]

    def figure(self, weights: ScoreWeights) -> NDArray[np.float64]:
        """(query,): what is maximized on average."""
        scaled: NDArray[np.float64] = (self.f(weights) / self.scale).mean(axis=1)
        return scaled

    def means(self, weights: ScoreWeights) -> list[float]:
        means: list[float] = self.f(weights).mean(axis=0).tolist()
        return means

    def ascend(self, starts: list[ScoreWeights], fixed: tuple[str, ...] = ()) -> ScoreWeights:
        """Change one weight at a time, while that gains enough, from the best of the starts."""
        best = max(starts, key=lambda weights: float(self.figure(weights).mean()))
        for _ in range(SWEEPS):
            before = best
            for name, values in GRID.items():
                if name not in self.free or name in fixed:
                    continue
                tried = max(
                    (replace(best, **{name: value}) for value in values),
                    key=lambda weights: float(self.figure(weights).mean()),
                )
                if self._surely_better(tried, best):
                    best = tried
            if best == before:
                break
        return best

    def _surely_better(self, tried: ScoreWeights, best: ScoreWeights) -> bool:
        gain = self.figure(tried) - self.figure(best)
        return bool(gain.mean() > SURE * gain.std() / np.sqrt(len(gain)) > 0.0)


def recencies(start: ScoreWeights, free: set[str]) -> tuple[float, ...]:
    """The values of `recency` that are tried."""
    return GRID["recency"] if "recency" in free else (start.recency,)


def free_weights(config: Config) -> set[str]:
    """The weights that a configuration leaves open."""
    none = set(NEIGHBOURS_ONLY) if config.neighbours == 0 else set()
    return {name for name, value in set_weights(config).items() if value is None} - none
