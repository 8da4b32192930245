"""The answer of the whole model, bit for bit, from what its shards found.

These are the steps of `join_neighbours` and `rerank`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pathdex.kernels.neighbours import add_similarity
from pathdex.kernels.select import best_items, top_k_items
from pathdex.kernels.types import Floats, Ints
from pathdex.retrieval.part_search import PartFound
from pathdex.retrieval.score_weights import ScoreWeights


class Chosen(NamedTuple):
    """The candidates of a query, as far as they can be in its answer."""

    items: Ints
    log_probability: Floats
    similarity: Floats
    base: Floats
    total: int
    """The number of candidates, those included that cannot be in the answer."""


def merge_parts(
    parts: Sequence[PartFound], weights: ScoreWeights, candidates: int, *, neighbours: bool, listed: bool
) -> Chosen:
    """Choose among what the shards found; `items` of the parts are codes of the whole model."""
    on_paths = [len(part.log_probability) for part in parts]
    firsts = [slice(0, count) for count in on_paths]
    rests = [slice(count, len(part.items)) for count, part in zip(on_paths, parts, strict=True)]
    slices = [*zip(parts, firsts, strict=True), *zip(parts, rests, strict=True)]
    items = np.concatenate([part.items[where] for part, where in slices])
    similarity = np.concatenate([part.similarity[where] for part, where in slices])
    base = np.concatenate([part.base[where] for part, where in slices])
    log_probability = np.zeros(len(items), np.float32)
    end, total = sum(on_paths), sum(part.total for part in parts)
    log_probability[:end] = np.concatenate([part.log_probability for part in parts])
    if total:
        log_probability[end:] = np.float32(min(part.least for part in parts))
    own, own_log = items[:end], log_probability[:end]
    if not neighbours or listed:
        kept = top_k_items(own, own_log, candidates) if candidates else np.arange(end)
        count = min(candidates, total) if candidates else total
    else:
        reserved = int(weights.share * (candidates or total))
        limit = candidates or total + reserved
        kept = top_k_items(own, own_log, limit - reserved)
        count = min(limit - reserved, total)
        if reserved:
            left = np.ones(len(items), np.bool_)
            left[kept] = False
            near = np.flatnonzero(left & (similarity > 0))
            joining = near[top_k_items(items[near], similarity[near], reserved)]
            others = np.setdiff1d(np.arange(end), joining)
            room = limit - len(joining)
            count = len(joining) + min(room, total - int(np.count_nonzero(joining < end)))
            others = others[top_k_items(own[others], own_log[others], room)]
            kept = np.concatenate([others, joining])
    return Chosen(items[kept], log_probability[kept], similarity[kept], base[kept], count)


def rank_chosen(chosen: Chosen, weights: ScoreWeights, n: int, *, neighbours: bool) -> tuple[Ints, Floats]:
    """The best n, best first, and their scores."""
    prior = np.float32(weights.path) * chosen.log_probability
    if neighbours:
        add_similarity(prior, chosen.similarity, weights.neighbour, weights.smoothing)
    items, scores = best_items(chosen.items, chosen.base + prior, n)
    return items, scores
