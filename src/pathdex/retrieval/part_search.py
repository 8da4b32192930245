"""What one shard finds for a query: the eligible items on given paths, and those that neighbours lead to.

The whole model chooses among the items of all shards. So a shard leaves out only items that cannot be chosen, whatever
the others hold, and reports what the choice depends on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pathdex.index.postings import NO_PATH
from pathdex.kernels.candidates import ALL_ITEMS, NO_COMPACT, gather_items, score_items
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.neighbours import add_similarity
from pathdex.kernels.select import best_items, top_k_items
from pathdex.kernels.types import Floats, Ints, Mask
from pathdex.retrieval.retriever import Retriever
from pathdex.retrieval.score_weights import ScoreWeights


class PartQuery(NamedTuple):
    """One query for a shard, in its own codes."""

    user: Floats
    positions: Ints
    """The paths to follow, by their positions among all paths in use."""
    log_p: Floats
    exclude: Ints
    mask: Mask | None
    """The items that `allow` and `where` let through; None for all."""
    similar: Ints
    """The neighbours of the history's items, ascending."""
    similarity: Floats
    n: int
    candidates: int
    """0 for no limit."""
    reserved: int
    """At most so many candidates come from neighbours."""
    neighbours: bool
    """Whether the model has neighbours."""
    listed: bool = False
    """Score all items of the mask on their own paths instead."""


class PartFound(NamedTuple):
    """Candidates of one shard: first those on paths, then those that only neighbours led to."""

    items: Ints
    log_probability: Floats
    """Of the items on paths."""
    similarity: Floats
    base: Floats
    """x . y_v + b_v."""
    total: int
    """The number of items that were found on paths."""
    least: float
    """The lowest log probability among them; infinity if there are none."""


def find_part(retriever: Retriever, weights: ScoreWeights, query: PartQuery) -> PartFound:
    """The items of a shard that may be candidates of the whole model."""
    exclude = as_readonly(query.exclude, np.int32)
    if query.listed:
        assert query.mask is not None
        listed = np.flatnonzero(query.mask)
        listed = listed[retriever.paths[listed, 0] != NO_PATH]
        items = listed[~np.isin(listed, exclude)]
        log_probability = retriever.item_log_probabilities(query.user, items)
    else:
        mask = ALL_ITEMS if query.mask is None else as_readonly(query.mask, np.bool_)
        items, log_probability = gather_items(
            retriever.on_paths, query.positions, query.log_p, exclude, mask, NO_COMPACT
        )
    total, least = len(items), float(log_probability.min()) if len(items) else np.inf
    similarity, found = _similarity_of(query, items), items
    kept = _kept(retriever, weights, query, items, log_probability, similarity)
    items, log_probability, similarity = items[kept], log_probability[kept], similarity[kept]
    near, near_similarity = np.empty(0, np.int64), np.empty(0, np.float32)
    if query.neighbours and not query.listed and len(query.similar):
        near, near_similarity = _only_similar(query, exclude, mask, found)
    all_items = np.concatenate([items, near])
    base = score_items(retriever.table, query.user, all_items, np.zeros(len(all_items), np.float32))
    return PartFound(all_items, log_probability, np.concatenate([similarity, near_similarity]), base, total, least)


def _similarity_of(query: PartQuery, items: Ints) -> Floats:
    similarity = np.zeros(len(items), np.float32)
    if len(query.similar):
        places = np.minimum(np.searchsorted(query.similar, items), len(query.similar) - 1)
        known = query.similar[places] == items
        similarity[known] = query.similarity[places[known]]
    return similarity


def _kept(
    retriever: Retriever,
    weights: ScoreWeights,
    query: PartQuery,
    items: Ints,
    log_probability: Floats,
    similarity: Floats,
) -> Ints:
    """The positions of the items that can be among the best n of all shards."""
    if query.candidates:
        # At most `reserved` of the most probable are counted as neighbours, so their places go to the next ones.
        probable = top_k_items(items, log_probability, query.candidates + query.reserved)
        if not query.reserved or query.listed:
            return np.sort(probable)
        near = np.flatnonzero(similarity > 0)
        near = near[top_k_items(items[near], similarity[near], query.candidates)]
        return np.union1d(probable, near)
    if len(items) <= query.n:
        return np.arange(len(items))
    # Without a limit, all items on paths are candidates, so their order is known here.
    prior = np.float32(weights.path) * log_probability
    if query.neighbours:
        add_similarity(prior, similarity, weights.neighbour, weights.smoothing)
    best, _ = best_items(items, score_items(retriever.table, query.user, items, prior), query.n)
    return np.flatnonzero(np.isin(items, best))


def _only_similar(query: PartQuery, exclude: Ints, mask: Mask, found: Ints) -> tuple[Ints, Floats]:
    """The most similar eligible items that are on none of the paths."""
    left = query.similarity > 0
    left &= ~np.isin(query.similar, found) & ~np.isin(query.similar, exclude)
    if len(mask):
        left &= mask[query.similar]
    near, similarity = query.similar[left], query.similarity[left]
    best = np.sort(top_k_items(near, similarity, query.candidates or query.reserved))
    return near[best], similarity[best]
