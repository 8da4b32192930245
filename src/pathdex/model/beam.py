"""Beam search over the layers: Algorithm 1, batched, on torch. The reference for every faster version."""

from __future__ import annotations

import torch
from torch import Tensor

from pathdex.model.structure import LayerNetwork


@torch.no_grad()
def beam_search(structure: LayerNetwork, users: Tensor, beam_size: int) -> tuple[Tensor, Tensor]:
    """The `beam_size` most probable paths of each user that a beam finds, best first.

    Implements Algorithm 1 on cumulative log-probabilities; a beam of 1 is the greedy search, a beam of all K^D paths
    is exhaustive. Returns nodes (batch, beam, layer) and log p(c | x) (batch, beam); the beam is narrower where there
    are fewer paths.
    """
    batch = users.shape[0]
    state = structure.begin(users).unsqueeze(1)  # (batch, beam = 1, ...)
    total = users.new_zeros(batch, 1)
    nodes = torch.empty(batch, 1, 0, dtype=torch.long, device=users.device)
    rows = torch.arange(batch, device=users.device)[:, None]
    for layer in range(structure.depth):
        scores = total[..., None] + structure.logits(state, layer).log_softmax(dim=-1)  # (batch, beam, node)
        total, best = scores.flatten(1).topk(min(beam_size, scores[0].numel()), dim=1)
        parent, node = best // structure.num_nodes, best % structure.num_nodes  # (batch, beam)
        nodes = torch.cat([nodes[rows, parent], node[..., None]], dim=2)
        if layer + 1 < structure.depth:
            state = structure.advance(state[rows, parent], layer, node)
    return nodes, total
