"""Why an item was recommended: the paths that fetched it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.data.vocabulary import Id
from pathdex.index.paths import decode_paths
from pathdex.retrieval.retriever import Candidates, Retriever


@dataclass(frozen=True)
class PathExplanation:
    """One of an item's paths, as a history sees it."""

    nodes: tuple[int, ...]
    layer_probability: tuple[float, ...]
    """p(c_d | x, c_1..c_{d-1}) of each layer; their product is `probability`."""
    probability: float
    beam_rank: int | None
    """Its place among the paths that the beam found, from 1; None where the beam lost it."""
    size: int
    """How many items lie on it."""


@dataclass(frozen=True)
class Explanation:
    """An item's paths, most probable first, and the score that ranks it."""

    item: Id
    paths: tuple[PathExplanation, ...]
    score: float | None
    """The final score; None where no path of the item was found."""

    def __str__(self) -> str:
        lines = [f"{self.item}: " + ("not retrieved" if self.score is None else f"score {self.score:.3f}")]
        for path in self.paths:
            layers = " x ".join(f"{value:.3f}" for value in path.layer_probability)
            rank = "not in the beam" if path.beam_rank is None else f"beam rank {path.beam_rank}"
            lines.append(f"  path {path.nodes}: p = {layers} = {path.probability:.2g}, {rank}, {path.size} items")
        return "\n".join(lines)


def explain(
    retriever: Retriever,
    user: torch.Tensor,
    paths: NDArray[np.int64],
    *,
    item: Id,
    code: int,
    beam: int,
    score: Callable[[torch.Tensor, Candidates], NDArray[np.float32]],
) -> Explanation:
    """Look at one user (1, dim) and the paths (path,) of one item."""
    structure = retriever.structure
    nodes = decode_paths(paths, structure.num_nodes, retriever.postings.depth)
    layers = _layer_probabilities(retriever, user, torch.from_numpy(nodes).to(user.device))
    found, log_probability = retriever.paths(user, beam)
    ranks = {int(path): rank for rank, path in enumerate(found[0], start=1)}
    parts = [
        PathExplanation(
            nodes=tuple(int(node) for node in nodes[row]),
            layer_probability=tuple(float(value) for value in layers[row]),
            probability=float(np.prod(layers[row])),
            beam_rank=ranks.get(int(path)),
            size=len(retriever.postings.items_on(int(path))),
        )
        for row, path in enumerate(paths)
    ]
    candidates = retriever.gather(found[0], log_probability[0])
    own = candidates.items == code
    final = None
    if own.any():
        final = float(score(user[0], Candidates(candidates.items[own], candidates.log_probability[own]))[0])
    return Explanation(item, tuple(sorted(parts, key=lambda part: -part.probability)), final)


@torch.no_grad()
def _layer_probabilities(retriever: Retriever, user: torch.Tensor, nodes: torch.Tensor) -> NDArray[np.float32]:
    """p(c_d | x, c_1..c_{d-1}) for paths (path, layer)."""
    structure = retriever.structure
    state = structure.begin(user).expand(len(nodes), *structure.begin(user).shape[1:])
    layers = []
    for layer in range(structure.depth):
        share = structure.logits(state, layer).softmax(dim=-1)
        layers.append(share.gather(1, nodes[:, layer : layer + 1]))
        if layer + 1 < structure.depth:
            state = structure.advance(state, layer, nodes[:, layer])
    return torch.cat(layers, dim=1).cpu().numpy()
