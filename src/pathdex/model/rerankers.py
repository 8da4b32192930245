"""Rerankers: what scores an item for a user, and the loss that trains it.

Both score by an inner product and a bias, s(x, v) = x . y_v + b_v, so exhaustive search stays possible and exact. A new
reranker is one class here and one entry in `RERANKERS`.
"""

from __future__ import annotations

from torch import Tensor, nn

from pathdex.model.losses import logistic_loss, softmax_loss


class SoftmaxReranker(nn.Module):
    """p(v | x) by a softmax over the catalogue (Section 2.3)."""

    def forward(self, users: Tensor, vectors: Tensor, bias: Tensor) -> Tensor:
        """Scores (batch, item) of users (batch, dim) for items (item, dim)."""
        return users @ vectors.T + bias

    def loss(self, scores: Tensor, targets: Tensor, log_inclusion: Tensor | None) -> Tensor:
        return softmax_loss(scores, targets, log_inclusion)


class LogisticReranker(SoftmaxReranker):
    """p(taken | x, v) by logistic regression (Section 5)."""

    def loss(self, scores: Tensor, targets: Tensor, log_inclusion: Tensor | None) -> Tensor:
        return logistic_loss(scores, targets, log_inclusion)


RERANKERS: dict[str, type[SoftmaxReranker]] = {"softmax": SoftmaxReranker, "logistic": LogisticReranker}
