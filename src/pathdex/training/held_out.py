"""Held-out queries by which a training makes its choices, and the figure that decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex import metrics
from pathdex.data.interactions import Interactions
from pathdex.data.splits import Queries, hold_out_tails, users_to_hold_out
from pathdex.data.vocabulary import UNKNOWN
from pathdex.errors import DataError, Problem
from pathdex.model.network import Network

MIN_QUERIES, MAX_QUERIES = 50, 1000
"""Fewer queries decide nothing; more cost time and decide no better."""
HELD_OUT_SHARE = 10
"""Without validation data, one user in this many loses the second half of the sequence to the held-out queries."""
SIZES = (10, 50)
"""Numbers of recommendations at which choices are compared."""
BLOCK_SCORES = 20_000_000
"""Scores that are computed at a time."""


class TrainingData(NamedTuple):
    """Interactions to train on, and queries to choose by; None if there are too few users."""

    train: Interactions
    held_out: Queries | None


def hold_out(data: Interactions, validation: Queries | None, seed: int, *, choosing: bool = True) -> TrainingData:
    """The validation queries if they are enough; otherwise, if `choosing`, the second halves of some sequences."""
    if validation is not None:
        validation = checked_queries(validation, data)
    if validation is not None and len(validation) >= MIN_QUERIES:
        rows = np.random.default_rng(seed).permutation(len(validation))[:MAX_QUERIES]
        return TrainingData(data, validation.take(np.sort(rows)))
    count = min(MAX_QUERIES, len(users_to_hold_out(data)) // HELD_OUT_SHARE)
    if count < MIN_QUERIES or not choosing:
        return TrainingData(data, None)
    return TrainingData(*hold_out_tails(data, count, seed=seed))


def checked_queries(queries: object, data: Interactions) -> Queries:
    """The queries that have a truth; raises `DataError` if they are not queries over the catalogue of the data."""
    if not isinstance(queries, Queries):
        rule = f"must be queries, not {type(queries).__name__}"
        raise DataError(Problem(rule, "validation", queries, "pass split.valid of the same split as the training data"))
    codes = np.concatenate([queries.history.values, queries.truth.values])
    if len(codes) and (codes.min() < 0 or codes.max() >= data.num_items):
        rule = f"holds items that are not in the catalogue of {data.num_items:,} items"
        raise DataError(Problem(rule, "validation", queries, "pass split.valid of the same split as the training data"))
    return queries.take(np.flatnonzero(queries.truth.lengths > 0))


def f_measures(ranked: NDArray[np.integer], queries: Queries, sizes: Sequence[int] = SIZES) -> NDArray[np.float64]:
    """F of each query at each size, (query, size), for ranked items (query, n), best first."""
    hits = metrics.hit_matrix(ranked, queries.truth)
    columns = []
    for size in sizes:
        first = hits[:, :size]
        columns.append(metrics.f_measure(metrics.precision(first), metrics.recall(first, queries.truth)))
    return np.stack(columns, axis=1)


@torch.no_grad()
def exhaustive_f_measures(
    network: Network, queries: Queries, change: Callable[[Tensor], Tensor] = lambda users: users
) -> NDArray[np.float64]:
    """`f_measures` of exhaustive search with the network's vectors, seen items removed. `change` maps user vectors."""
    users = change(network.user_vectors(queries.history))
    vectors, bias = network.items.outputs(network.items.rows), network.items.bias(network.items.rows)
    size = min(max(SIZES), network.num_items)
    ranked, block = [], max(1, BLOCK_SCORES // network.num_items)
    for begin in range(0, len(queries), block):
        rows = np.arange(begin, min(begin + block, len(queries)))
        scores = (users[begin : begin + block] @ vectors.T).add_(bias)
        seen = queries.history.take(rows)
        owner = torch.from_numpy(np.repeat(np.arange(len(rows)), seen.lengths)).to(scores.device)
        own, places = network.items.find(torch.from_numpy(seen.values.astype(np.int64)).to(scores.device))
        scores[owner[own], places[own]] = -torch.inf
        best, items = network.items.best(scores, size)
        # A small catalogue has fewer items than places once the seen ones are gone.
        ranked.append(torch.where(best > -torch.inf, items, UNKNOWN).cpu().numpy())
    return f_measures(np.concatenate(ranked), queries)


def describe_sizes() -> str:
    """`F@10 and F@50`"""
    return " and ".join(f"F@{size}" for size in SIZES)


def percent(f: Sequence[float] | NDArray[np.float64]) -> str:
    """F at each size, for a sentence."""
    return " and ".join(f"{100 * value:.2f}%" for value in f)
