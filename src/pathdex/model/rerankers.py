"""Rerankers and their losses.

All rerankers score by s(x, v) = x . y_v + b_v, so exhaustive search stays exact. To add a loss, add a function in
`losses` and an entry in `RERANKERS`.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from pathdex.model.losses import logistic_loss, softmax_loss

RERANKERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"softmax": softmax_loss, "logistic": logistic_loss}
"""Losses of positive scores (batch,) and negative scores (batch, item)."""


def rerank_scores(users: Tensor, vectors: Tensor, bias: Tensor) -> Tensor:
    """Scores of all items for all users: (batch, dim), (item, dim), (item,) -> (batch, item)."""
    return users @ vectors.T + bias
