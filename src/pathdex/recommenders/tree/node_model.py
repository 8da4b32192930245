"""The node model: how much a user likes the items under a node.

The history is split into windows that double in length with distance (TDM's time windows): the last item, the one
before, the two before that, four, eight, ... Each window is the mean of its items' vectors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pathdex.model.encoders import identity_linear


class User(NamedTuple):
    """An encoded user, to score any number of nodes."""

    keys: Tensor
    """(user, window, dim): attention keys."""
    windows: Tensor
    """(user, window, dim)."""
    values: Tensor
    """(user, window, hidden): the windows' part of the hidden units."""
    vector: Tensor
    """(user, dim)."""
    hidden: Tensor
    """(user, hidden): the user's own part of the hidden units."""
    reached: Tensor
    """(user,): number of non-empty windows."""


class NodeModel(nn.Module):
    """logit(u, n) = e_n . (x_u + a_u(n)) + b_n + w . relu(W e_n + V a_u(n) + h_u).

    a_u(n) is the attention over the windows with e_n as the query. x_u and h_u are dense layers over all windows,
    concatenated. Without `attention`, x_u replaces a_u(n) and is added only once.
    """

    def __init__(self, dim: int, windows: int, hidden: int, dropout: float, *, attention: bool) -> None:
        super().__init__()
        self.num_windows, self.attention = windows, attention
        self.start = nn.Parameter(torch.randn(dim) * dim**-0.5)
        self.dropout = nn.Dropout(dropout)
        self.user_hidden = nn.Linear(windows * dim, 2 * hidden)
        self.user_vector = nn.Linear(2 * hidden, dim)
        self.last, self.mean = identity_linear(dim), identity_linear(dim)
        self.user_part = nn.Linear(2 * hidden, hidden)
        self.key = identity_linear(dim)
        self.recency = nn.Parameter(torch.zeros(windows if attention else 1))
        self.node_part = nn.Linear(dim, hidden, bias=False)
        self.seen_part = nn.Linear(dim, hidden, bias=False)
        self.out = nn.Linear(hidden, 1, bias=False)
        nn.init.normal_(self.out.weight, std=0.1 * hidden**-0.5)

    def read(self, vectors: Tensor, rows: Tensor, last: Tensor) -> User:
        """Users from item vectors (sequence, time, dim): user i is sequence `rows[i]` up to and including `last[i]`."""
        vectors = self.dropout(vectors)
        time, dim = vectors.shape[1], vectors.shape[2]
        sums = nn.functional.pad(vectors.cumsum(dim=1), (0, 0, 1, 0)).view(-1, dim)  # (sequence x (time + 1), dim)
        # Windows beyond the longest history would be all zeros.
        reach = min(self.num_windows, 1 + (time - 1).bit_length())
        back = torch.tensor([0, *(2**window for window in range(reach))], device=vectors.device)
        ends = (last[:, None] + 1 - back).clamp_(min=0)  # (user, window + 1)
        upto = nn.functional.embedding(rows[:, None] * (time + 1) + ends, sums)
        length = ends[:, :-1] - ends[:, 1:]
        windows = (upto[:, :-1] - upto[:, 1:]) / length.clamp(min=1)[..., None]

        weight = self.user_hidden.weight[:, : reach * dim]
        shared = torch.relu(nn.functional.linear(windows.flatten(1), weight, self.user_hidden.bias))
        mean = upto[:, 0] / ends[:, :1]
        vector = self.user_vector(shared) + self.last(windows[:, 0]) + self.mean(mean)
        hidden = self.user_part(shared)
        if self.attention:
            keys = self.key(windows) / math.sqrt(dim)
            return User(keys, windows, self.seen_part(windows), vector, hidden, (length > 0).sum(dim=1))
        # A single window that is the same for every node.
        alone, nothing = vector[:, None], torch.zeros_like(vector)
        return User(nothing[:, None], alone, self.seen_part(alone), nothing, hidden, torch.ones_like(rows))

    def forward(self, user: User, nodes: Tensor, bias: Tensor) -> Tensor:
        """Logits (user, node) for node vectors (user, node, dim) and biases (user, node)."""
        recency = self.recency[: user.keys.shape[1]]
        scores = nodes @ user.keys.transpose(1, 2) + recency  # (user, node, window)
        empty = torch.arange(len(recency), device=nodes.device) >= user.reached[:, None]
        weights = scores.masked_fill(empty[:, None], -torch.inf).softmax(dim=-1)
        direct = (nodes * (user.vector[:, None] + weights @ user.windows)).sum(dim=-1)
        hidden = torch.relu(self.node_part(nodes) + weights @ user.values + user.hidden[:, None])
        return direct + bias + self.out(hidden)[..., 0]  # type: ignore[no-any-return]
