"""Algorithm 1, batched beam search in torch: the reference for the compiled version."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pathdex.model.structure import LayerNetwork


@torch.no_grad()
def beam_search(
    structure: LayerNetwork, users: Tensor, beam_size: int, prefixes: Sequence[Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """The `beam_size` most probable paths that a beam finds for each user, best first.

    Implements Algorithm 1 on cumulative log-probabilities. A beam of 1 is greedy search, a beam of all K^D paths is
    exhaustive. Returns nodes (batch, beam, layer) and log p(c | x) (batch, beam); the beam is narrower if there are
    fewer paths.

    Differs from the paper: with `prefixes`, one tensor of sorted prefix codes per layer, the beam follows only these
    prefixes, so that it wastes no width on paths without items. Rows with fewer paths than others are padded with -inf.
    """
    batch = users.shape[0]
    state = structure.begin(users).unsqueeze(1)  # (batch, beam = 1, ...)
    total = users.new_zeros(batch, 1)
    codes = torch.zeros(batch, 1, dtype=torch.long, device=users.device)  # mixed radix, first layer most significant
    nodes = torch.empty(batch, 1, 0, dtype=torch.long, device=users.device)
    rows = torch.arange(batch, device=users.device)[:, None]
    for layer in range(structure.depth):
        scores = total[..., None] + structure.logits(state, layer).log_softmax(dim=-1)  # (batch, beam, node)
        beam = min(beam_size, scores[0].numel())
        if prefixes is not None:
            scores, beam = (
                _mask_others(prefixes[layer], scores, codes, structure.num_nodes),
                min(beam, len(prefixes[layer])),
            )
        total, best = scores.flatten(1).topk(beam, dim=1)
        parent, node = best // structure.num_nodes, best % structure.num_nodes  # (batch, beam)
        nodes = torch.cat([nodes[rows, parent], node[..., None]], dim=2)
        codes = codes[rows, parent] * structure.num_nodes + node
        if layer + 1 < structure.depth:
            state = structure.advance(state[rows, parent], layer, node)
    return nodes, total


def _mask_others(prefixes: Tensor, scores: Tensor, codes: Tensor, num_nodes: int) -> Tensor:
    """Scores (batch, beam, node) with -inf for nodes that lead to none of the prefixes."""
    reached = codes[..., None] * num_nodes + torch.arange(num_nodes, device=codes.device)
    position = torch.searchsorted(prefixes, reached).clamp_(max=len(prefixes) - 1)
    return scores.masked_fill(prefixes[position] != reached, -torch.inf)
