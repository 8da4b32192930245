"""Losses as pure functions of tensors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def structure_loss(log_probabilities: Tensor) -> Tensor:
    """Mean of -log sum_j p(c_j | x) for log-probabilities (batch, path): the multi-path objective of Section 2.1."""
    return -torch.logsumexp(log_probabilities, dim=1).mean()


def softmax_loss(positive: Tensor, negative: Tensor) -> Tensor:
    """Mean of -log p_softmax(y | x): Section 2.3.

    `positive` (batch,) are the scores of the targets, `negative` (batch, item) the scores of other items from
    `negative_scores`: the full softmax if these are all other items, else the sampled softmax.
    """
    return (torch.logaddexp(positive, negative.logsumexp(dim=1)) - positive).mean()


def logistic_loss(positive: Tensor, negative: Tensor) -> Tensor:
    """Mean logistic loss of "this item was taken": the reranker of Section 5."""
    return (functional.softplus(-positive) + functional.softplus(negative).sum(dim=1)).mean()


def negative_scores(scores: Tensor, items: Tensor, targets: Tensor, log_inclusion: Tensor | None) -> Tensor:
    """Scores (batch, item) of sampled items as scores of negatives.

    The target's own entry becomes -inf. `log_inclusion` (item,) is the log-probability that an item is in the sample.
    Subtracting it makes sums over the sample unbiased estimates of sums over the catalogue (log-q correction). `items`
    must be sorted and distinct.
    """
    if log_inclusion is not None:
        scores = scores - log_inclusion
    column = torch.searchsorted(items, targets).clamp_(max=len(items) - 1)
    own = items[column] == targets
    rows = torch.arange(len(targets), device=scores.device)
    return scores.index_put((rows[own], column[own]), scores.new_tensor(-torch.inf))
