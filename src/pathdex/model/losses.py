"""The losses as pure functions of tensors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def structure_loss(log_probabilities: Tensor) -> Tensor:
    """-log sum_j p(c_j | x), averaged: the multi-path objective of Section 2.1 for (batch, path) log-probabilities."""
    return -torch.logsumexp(log_probabilities, dim=1).mean()


def softmax_loss(positive: Tensor, negative: Tensor) -> Tensor:
    """-log p_softmax(y | x), averaged: Section 2.3.

    `positive` (batch,) holds the score of each user's own item, `negative` (batch, item) those of other items, from
    `negative_scores`. With all other items it is the full softmax, with a sample the sampled softmax.
    """
    return (torch.logaddexp(positive, negative.logsumexp(dim=1)) - positive).mean()


def logistic_loss(positive: Tensor, negative: Tensor) -> Tensor:
    """Logistic regression of "this item was taken", averaged over users: the reranker of Section 5."""
    return (functional.softplus(-positive) + functional.softplus(negative).sum(dim=1)).mean()


def negative_scores(scores: Tensor, items: Tensor, targets: Tensor, log_inclusion: Tensor | None) -> Tensor:
    """Turn the scores (batch, item) of sampled items into those of negatives.

    A user's own item is no negative: its entry becomes -inf. `log_inclusion` (item,) is the log-probability that each
    item got into the sample; subtracting it makes sums over the sample estimates of sums over the catalogue (log-q
    correction). `items` is sorted and distinct.
    """
    if log_inclusion is not None:
        scores = scores - log_inclusion
    column = torch.searchsorted(items, targets).clamp_(max=len(items) - 1)
    own = items[column] == targets
    rows = torch.arange(len(targets), device=scores.device)
    return scores.index_put((rows[own], column[own]), scores.new_tensor(-torch.inf))
