"""The losses as pure functions of tensors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def structure_loss(log_probabilities: Tensor) -> Tensor:
    """-log sum_j p(c_j | x), averaged: the multi-path objective of Section 2.1 for (batch, path) log-probabilities."""
    return -torch.logsumexp(log_probabilities, dim=1).mean()


def softmax_loss(scores: Tensor, targets: Tensor, log_inclusion: Tensor | None = None) -> Tensor:
    """-log p_softmax(y | x), averaged, over the given candidates: Section 2.3.

    `scores` is (batch, candidate) and `targets` the column of each row's own item. Where the candidates are a sample,
    `log_inclusion` is the log-probability that each of them got into it; subtracting it makes the sampled sum an
    estimate of the full one (log-q correction). None means that the candidates are the whole catalogue.
    """
    if log_inclusion is not None:
        scores = scores - log_inclusion
    return functional.cross_entropy(scores, targets)


def logistic_loss(scores: Tensor, targets: Tensor, log_inclusion: Tensor | None = None) -> Tensor:
    """Logistic regression of "this item was taken" against the candidates: the reranker of Section 5.

    The item taken is the positive, every other candidate a negative; the log-q correction keeps a popular negative from
    being punished for being sampled often.
    """
    if log_inclusion is not None:
        scores = scores - log_inclusion
    positive = scores.gather(1, targets[:, None]).squeeze(1)
    negative = functional.softplus(scores).sum(dim=1) - functional.softplus(positive)
    return (functional.softplus(-positive) + negative).mean()
