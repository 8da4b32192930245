"""Rerankers: what scores an item for a user, and the loss that trains it.

Both score by an inner product and a bias, s(x, v) = x . y_v + b_v, so exhaustive search stays possible and exact. A new
loss is one function in `losses` and one entry in `RERANKERS`.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from pathdex.model.losses import logistic_loss, softmax_loss

RERANKERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"softmax": softmax_loss, "logistic": logistic_loss}
"""Losses of (positive scores (batch,), negative scores (batch, item))."""


def rerank_scores(users: Tensor, vectors: Tensor, bias: Tensor) -> Tensor:
    """Every user's score for every item: (batch, dim), (item, dim), (item,) -> (batch, item)."""
    return users @ vectors.T + bias
