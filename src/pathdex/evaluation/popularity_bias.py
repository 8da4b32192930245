"""Popularity of the recommended items: deciles of the catalogue, the long tail, novelty."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pathdex.data.vocabulary import UNKNOWN
from pathdex.recommenders.popularity import popularity_order

DECILES = 10
HEAD = 2
"""The most popular deciles; all others are the long tail."""


def popularity_deciles(item_counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The decile of each item, 0 for the most frequent tenth of the catalogue; ties by code."""
    places = np.empty(len(item_counts), np.int64)
    places[popularity_order(item_counts)] = np.arange(len(item_counts))
    return places * DECILES // len(item_counts)


def decile_shares(items: NDArray[np.integer], deciles: NDArray[np.int64]) -> list[float]:
    """The share of the items (any shape, without `UNKNOWN`) in each decile; zeros if there are no items."""
    real = items[items != UNKNOWN]
    counts = np.bincount(deciles[real], minlength=DECILES)
    shares: list[float] = (counts / max(1, counts.sum())).tolist()
    return shares


def tail_shares(items: NDArray[np.integer], deciles: NDArray[np.int64]) -> NDArray[np.float64]:
    """(query,) the long-tail share of each answer (query, n); 0 for an empty answer."""
    real = items != UNKNOWN
    tail = real & (deciles[np.where(real, items, 0)] >= HEAD)
    shares: NDArray[np.float64] = tail.sum(axis=1) / np.maximum(1, real.sum(axis=1))
    return shares


def novelty(items: NDArray[np.integer], item_counts: NDArray[np.int64]) -> float:
    """Mean of -log2((N_v + 1) / (N + V)) over the recommended items, in bits.

    N is the number of interactions, V the number of items; adding one keeps items that never occur finite.
    """
    real = items[items != UNKNOWN]
    if not len(real):
        return 0.0
    shares = (item_counts[real] + 1) / (item_counts.sum() + len(item_counts))
    return float(-np.log2(shares).mean())
