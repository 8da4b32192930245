"""A query step by step: the beam layer by layer, the candidates with what brought them, and the parts of each score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pathdex.index.paths import decode_paths
from pathdex.kernels.beam import layer_log_probabilities
from pathdex.kernels.neighbours import add_similarity
from pathdex.kernels.types import Floats, Ints
from pathdex.retrieval.beam_plan import BeamPlan
from pathdex.retrieval.filters import Filters
from pathdex.retrieval.retriever import Candidates, Retriever
from pathdex.retrieval.user_state import UserState


@dataclass(frozen=True, eq=False)
class LayerTrace:
    """What a beam did on one layer."""

    kept: Ints
    """Codes of the prefixes that it kept, best first."""
    log_probability: Floats
    """log p(c_1..c_d | x) of these."""
    compared: Ints
    """Codes of all prefixes in use below those kept on the layer before, ascending."""
    compared_log_probability: Floats
    steps: Floats
    """log p(c_d | x, c_1..c_{d-1}) of `compared`."""


@dataclass(frozen=True, eq=False)
class ScoreSummands:
    """The parts of the final scores of some items; their sum is the score, up to rounding."""

    reranker: Floats
    bias: Floats
    path: Floats
    neighbours: Floats


@dataclass(frozen=True, eq=False)
class QueryTrace:
    """How one query was answered, in codes."""

    state: UserState
    beams: BeamPlan | None
    """The requested and the last beam; None if the few eligible items are scored one by one."""
    candidates: Candidates
    layers: list[LayerTrace]
    items: Ints
    """All candidates, the best first; `scores`, `log_probability` and `parts` are in this order."""
    scores: Floats
    log_probability: Floats
    similarity: Floats
    parts: ScoreSummands


def trace_query(
    retriever: Retriever, state: UserState, filters: Filters, *, n: int, beam: int, candidates: int | None
) -> QueryTrace:
    """Answer the first query of `filters` as `Retriever.best_items` does, and keep every step."""
    found, plan = retriever.trace_candidates(state, filters, 0, beam=beam, candidates=candidates, min_candidates=n)
    items, scores = retriever.rerank(state.vector, found, len(found.items))
    order = np.argsort(found.items)
    place = order[np.searchsorted(found.items, items, sorter=order)]
    log_p = found.log_probability[place]
    similarity = np.zeros(len(items), np.float32) if found.similarity is None else found.similarity[place]
    return QueryTrace(
        state,
        plan,
        found,
        [] if plan is None else trace_beam(retriever, state.vector, plan.max_beam),
        items,
        scores,
        log_p,
        similarity,
        score_parts(retriever, state.vector, items, log_p, None if found.similarity is None else similarity),
    )


def trace_beam(retriever: Retriever, user: Floats, beam: int) -> list[LayerTrace]:
    """Algorithm 1 layer by layer, with what it pruned."""
    postings, layers = retriever.postings, list[LayerTrace]()
    above = np.zeros(1, np.int64)  # The root.
    for depth in range(1, postings.depth + 1):
        parents = np.sort(np.searchsorted(postings.prefixes[depth - 1], above))
        first = postings.children[depth - 1]
        compared = np.concatenate(
            [postings.prefixes[depth][first[one] : first[one + 1]] for one in parents] or [above[:0]]
        )
        steps = layer_log_probabilities(
            retriever.structure, user, np.ascontiguousarray(decode_paths(compared, postings.num_nodes, depth))
        )
        kept, log_p = retriever.search_paths(user, beam, depth)
        layers.append(LayerTrace(kept, log_p, compared, steps.sum(axis=1), steps[:, -1]))
        above = kept
    return layers


def score_parts(
    retriever: Retriever, user: Floats, items: Ints, log_probability: Floats, similarity: Floats | None
) -> ScoreSummands:
    """The summands of s(x, v) + path log p(v | x) + neighbour log(smoothing + similarity)."""
    weights, near = retriever.weights, np.zeros(len(items), np.float32)
    if similarity is not None:
        add_similarity(near, np.ascontiguousarray(similarity), weights.neighbour, weights.smoothing)
    return ScoreSummands(
        retriever.item_vectors[items] @ user,
        retriever.table[items, -1],
        np.float32(weights.path) * log_probability,
        near,
    )
