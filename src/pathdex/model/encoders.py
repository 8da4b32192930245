"""User encoders: map a history of item vectors to one user vector per position.

Every encoder is causal: the output at position t depends only on inputs up to t, so one pass over a sequence yields a
training sample at each position. To add an encoder, add a class here and an entry in `ENCODERS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from pathdex.model.dropout import BatchPart
from pathdex.model.precision import linear
from pathdex.model.recurrence import gather_inputs, recurrent_features

LAST_START, MEAN_START = 0.5, 1.5
"""Initial weights of the last item and of the mean, as multiples of the identity."""


class GRUEncoder(nn.Module):
    """A GRU (Section 4) plus direct terms for the last item and the mean of the history.

    Differs from the paper: x = P h_t + A e_t + B mean(e_1..e_t). On sparse catalogues a GRU alone needs many epochs to
    learn the two direct terms.
    """

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.recurrent = nn.GRU(dim, dim, batch_first=True)
        self.project = nn.Linear(dim, dim)
        self.last = identity_linear(dim, LAST_START)
        self.mean = identity_linear(dim, MEAN_START)

    def forward(self, vectors: Tensor) -> Tensor:
        vectors = self.dropout(vectors)  # (batch, time, dim)
        states, _ = self.recurrent(vectors)
        direct = self.last(vectors) + self.mean(running_mean(vectors))
        return self.project(states) + direct  # type: ignore[no-any-return]

    def encode_samples(
        self, rows: Tensor, start: Tensor, codes: Tensor, window: Tensor, time: Tensor, part: BatchPart | None = None
    ) -> Tensor:
        """User vectors (sample, dim) at columns `time` of rows `window`, in compiled code on the CPU.

        Codes (batch, time) are indices into item rows; -1 is the vector `start`.
        """
        vectors = gather_inputs(rows, start, codes, self.dropout.p if self.training else 0.0, part)
        features = recurrent_features(vectors, self.recurrent, time * len(codes) + window)
        weight = torch.cat([self.project.weight, self.last.weight, self.mean.weight], dim=1)
        return linear(features, weight, self.project.bias)


class PooledEncoder(nn.Module):
    """A small network over the mean of the history and its last item, as in YouTube DNN."""

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.network = nn.Sequential(nn.Linear(2 * dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))
        self.last = identity_linear(dim, LAST_START)
        self.mean = identity_linear(dim, MEAN_START)

    def forward(self, vectors: Tensor) -> Tensor:
        vectors = self.dropout(vectors)
        mean = running_mean(vectors)
        hidden = self.network(torch.cat([mean, vectors], dim=-1))
        return hidden + self.last(vectors) + self.mean(mean)  # type: ignore[no-any-return]


class AttentionEncoder(nn.Module):
    """Two blocks of causal self-attention.

    Distance enters as a linear bias per head. There is no position table, so a history may start anywhere in a
    sequence.
    """

    def __init__(self, dim: int, dropout: float, heads: int = 2, blocks: int = 2) -> None:
        super().__init__()
        heads = heads if dim % heads == 0 else 1
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(_AttentionBlock(dim, heads, dropout) for _ in range(blocks))
        self.norm = nn.LayerNorm(dim)
        self.last = identity_linear(dim)

    def forward(self, vectors: Tensor) -> Tensor:
        vectors = self.dropout(vectors)
        hidden = vectors
        for block in self.blocks:
            hidden = block(hidden)
        return self.norm(hidden) + self.last(vectors)  # type: ignore[no-any-return]


class _AttentionBlock(nn.Module):
    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.norm = nn.LayerNorm(dim)
        self.query_key_value = nn.Linear(dim, 3 * dim)
        self.merge = nn.Linear(dim, dim)
        self.forward_network = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Dropout(dropout), nn.Linear(2 * dim, dim)
        )

    def forward(self, hidden: Tensor) -> Tensor:
        batch, time, dim = hidden.shape
        projected = self.query_key_value(self.norm(hidden)).view(batch, time, 3, self.heads, -1)
        query, key, value = projected.permute(2, 0, 3, 1, 4)  # each (batch, head, time, dim / head)
        attended = nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=_recency_bias(time, self.heads, hidden), dropout_p=0.0
        )
        hidden = hidden + self.merge(attended.transpose(1, 2).reshape(batch, time, dim))
        return hidden + self.forward_network(hidden)  # type: ignore[no-any-return]


ENCODERS: dict[str, Callable[[int, float], nn.Module]] = {
    "gru": GRUEncoder,
    "pooled": PooledEncoder,
    "attention": AttentionEncoder,
}


def running_mean(vectors: Tensor) -> Tensor:
    """Mean of the inputs up to each position: (batch, time, dim) -> (batch, time, dim)."""
    counts = torch.arange(1, vectors.shape[1] + 1, device=vectors.device, dtype=vectors.dtype)
    return vectors.cumsum(dim=1) / counts[:, None]


def identity_linear(dim: int, factor: float = 1.0) -> nn.Linear:
    """A linear layer initialized to `factor` times the identity."""
    layer = nn.Linear(dim, dim, bias=False)
    with torch.no_grad():
        layer.weight.copy_(factor * torch.eye(dim))
    return layer


def _recency_bias(time: int, heads: int, like: Tensor) -> Tensor:
    """(head, time, time): -slope x distance for the past, -inf for the future."""
    positions = torch.arange(time, device=like.device)
    distance = (positions[:, None] - positions[None, :]).to(like.dtype)
    slopes = torch.tensor([2.0 ** (-3 * head - 1) for head in range(heads)], device=like.device, dtype=like.dtype)
    return torch.where(distance < 0, -math.inf, -slopes[:, None, None] * distance)
