"""Explanations of why an item was recommended, or why not, from the probabilities of its paths."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pathdex.data.item_details import ItemDetails
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Id
from pathdex.index.paths import decode_paths
from pathdex.index.postings import NO_PATH
from pathdex.kernels.types import Floats, Int32s, Ints
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.retriever import Retriever
from pathdex.retrieval.user_state import UserState


@dataclass(frozen=True)
class PathExplanation:
    """One of an item's paths, given a history."""

    nodes: tuple[int, ...]
    layer_probability: tuple[float, ...]
    """p(c_d | x, c_1..c_{d-1}) of each layer; their product is `probability`."""
    probability: float
    beam_rank: int | None
    """Its rank among the paths that the beam found, from 1; None if the beam lost it."""
    lost_at: int | None
    """The first layer, from 1, at which the beam lost the path; None if it was found."""
    size: int
    """The number of items on it."""


@dataclass(frozen=True)
class Explanation:
    """An item's paths, most probable first, and the score that ranks it."""

    item: Id
    paths: tuple[PathExplanation, ...]
    score: float | None
    """The final score; None if the item is not a candidate."""
    title: str | None = None
    """The item's title, if the model has one."""

    def titled(self, details: ItemDetails | None) -> Explanation:
        """The same with the item's title."""
        return self if details is None else replace(self, title=details.title(self.item))

    @property
    def label(self) -> str:
        """The item with its title, if it has one."""
        return str(self.item) if self.title is None else f"{self.item} ({self.title})"

    def __str__(self) -> str:
        lines = [f"{self.label}: " + ("not retrieved" if self.score is None else f"score {self.score:.3f}")]
        for path in self.paths:
            layers = " x ".join(f"{value:.3f}" for value in path.layer_probability)
            rank = f"lost at layer {path.lost_at}" if path.beam_rank is None else f"beam rank {path.beam_rank}"
            lines.append(f"  path {path.nodes}: p = {layers} = {path.probability:.2g}, {rank}, {path.size} items")
        return "\n".join(lines)


@dataclass(frozen=True)
class WhyNot:
    """What kept an item out of the best n, if anything did."""

    explanation: Explanation
    reason: str
    """`recommended`, `seen` (excluded), `beam` (none of its paths was found), `rerank` (others score higher), or
    `no path` (a new item of a live model that has none yet)."""
    n: int
    beam: int
    layer: int | None
    """If the reason is `beam`, the layer, from 1, at which the beam lost the last of its paths."""
    smallest_beam: int | None
    """The smallest beam that finds it; None if the beam in use does."""
    rank: int | None
    """Its rank among the candidates, from 1; None if it is not a candidate."""
    needed: float | None
    """The score of the n-th candidate; None if there are fewer."""

    def titled(self, details: ItemDetails | None) -> WhyNot:
        """The same with the item's title."""
        return replace(self, explanation=self.explanation.titled(details))

    def __str__(self) -> str:
        item = self.explanation.label
        texts = {
            "recommended": f"{item} is recommended, at rank {self.rank}",
            "no path": f"{item} is on no path yet",
            "seen": f"{item} is in the history, whose items are excluded",
            "beam": f"{item} was lost at layer {self.layer} by a beam of {self.beam}; "
            f"a beam of {self.smallest_beam} finds it",
            "rerank": f"{item} is candidate {self.rank} by score; the first {self.n} score "
            + (f"{self.needed:.3f} or more" if self.needed is not None else "more"),
        }
        return f"{texts[self.reason]}\n{self.explanation}"


def explain(retriever: Retriever, state: UserState, item: Id, code: int, *, beam: int) -> Explanation:
    """The paths of one item, with their probabilities for a user."""
    paths = _paths_of(retriever, code)
    sizes = [len(retriever.postings.items_on(int(path))) for path in paths]
    score = _ranking(retriever, state, beam).get(code, (None, 0))[0]
    return explain_paths(retriever, state.vector, item, paths, sizes, score, beam=beam)


def explain_paths(
    retriever: Retriever,
    user: Floats,
    item: Id,
    paths: Ints,
    sizes: Sequence[int],
    score: float | None,
    *,
    beam: int,
) -> Explanation:
    """The paths of an item, which hold `sizes` items, with their probabilities for a user vector."""
    nodes = decode_paths(paths, retriever.postings.num_nodes, retriever.postings.depth)
    layers = np.exp(retriever.path_log_probabilities(user, paths).astype(np.float64))
    ranks = {int(path): rank for rank, path in enumerate(retriever.search_paths(user, beam)[0], start=1)}
    parts = [
        PathExplanation(
            nodes=tuple(int(node) for node in nodes[row]),
            layer_probability=tuple(float(value) for value in layers[row]),
            probability=float(np.prod(layers[row])),
            beam_rank=ranks.get(int(path)),
            lost_at=None if int(path) in ranks else _lost_at(retriever, user, int(path), beam),
            size=sizes[row],
        )
        for row, path in enumerate(paths)
    ]
    return Explanation(item, tuple(sorted(parts, key=lambda part: -part.probability)), score)


def why_not(
    retriever: Retriever, state: UserState, item: Id, code: int, *, exclude_seen: bool, n: int, beam: int
) -> WhyNot:
    """What keeps one item out of the best n of a history, if anything does."""
    ranking = _ranking(retriever, state, beam, min_candidates=n, exclude=state.history if exclude_seen else None)
    rank = ranking[code][1] if code in ranking else None
    explanation = explain(retriever, state, item, code, beam=beam)
    scores = [score for score, _ in ranking.values()]
    seen = exclude_seen and code in state.history
    paths = _paths_of(retriever, code)
    return give_reason(retriever, state.vector, explanation, paths, scores, rank, seen=seen, n=n, beam=beam)


def give_reason(
    retriever: Retriever,
    user: Floats,
    explanation: Explanation,
    paths: Ints,
    scores: Sequence[float],
    rank: int | None,
    *,
    seen: bool,
    n: int,
    beam: int,
) -> WhyNot:
    """Why an explained item is not among the best n; `scores` are those of all candidates, and `rank` is the item's."""
    if seen:
        reason = "seen"
    elif rank is None:
        reason = "beam" if explanation.paths else "no path"
    else:
        reason = "recommended" if rank <= n else "rerank"
    lost = reason == "beam"
    return WhyNot(
        explanation,
        reason,
        n,
        beam,
        layer=max(path.lost_at or 0 for path in explanation.paths) if lost else None,
        smallest_beam=_smallest_beam(retriever, user, paths, beam) if lost else None,
        rank=rank,
        needed=scores[n - 1] if len(scores) >= n else None,
    )


def _paths_of(retriever: Retriever, code: int) -> Ints:
    paths = retriever.paths[code]
    placed: Ints = paths[paths != NO_PATH]
    return placed


def _ranking(
    retriever: Retriever, state: UserState, beam: int, *, min_candidates: int = 0, exclude: Int32s | None = None
) -> dict[int, tuple[float, int]]:
    """Score and rank, from 1, of every candidate of a beam, best first."""
    filters = NO_FILTERS if exclude is None else Filters(Ragged.from_rows([exclude]))
    found = retriever.find_candidates(state, filters, 0, beam=beam, min_candidates=min_candidates)
    items, scores = retriever.rerank(state.vector, found, len(found.items))
    pairs = enumerate(zip(items.tolist(), scores.tolist(), strict=True), start=1)
    return {item: (score, rank) for rank, (item, score) in pairs}


def _lost_at(retriever: Retriever, user: Floats, path: int, beam: int) -> int:
    depth, num_nodes = retriever.postings.depth, retriever.postings.num_nodes
    for layer in range(1, depth):
        if path // num_nodes ** (depth - layer) not in retriever.search_paths(user, beam, layer)[0]:
            return layer
    return depth


def _smallest_beam(retriever: Retriever, user: Floats, paths: Ints, beam: int) -> int:
    """The smallest beam that finds one of the paths, by bisection. `beam` itself finds none."""

    def finds(width: int) -> bool:
        return bool(np.isin(paths, retriever.search_paths(user, width)[0]).any())

    enough = 2 * beam
    while not finds(enough):
        enough *= 2
    return bisect_left(range(enough), True, lo=enough // 2 + 1, key=finds)
