"""One function per metric, on arrays.

`recommended` is (query, n) item codes, best first, padded with `UNKNOWN` (-1); `truth` has one row per query. Per-query
functions return (query,) float64; the protocol averages them without weights.

The truth is a list: an item that occurs in it twice counts twice in |truth|. A recommended item is one hit, however
often the truth repeats it, so recall stays below 1 for a truth with repeats. `distinct_recall` counts repeats once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pathdex.data.interactions import popularity_order
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN
from pathdex.errors import DataError, Problem

DECILES = 10
HEAD = 2
"""The most popular deciles; all others are the long tail."""


def hit_matrix(recommended: NDArray[np.integer], truth: Ragged) -> NDArray[np.bool_]:
    """(query, n): whether the item at each place is in that query's truth."""
    if len(recommended) != len(truth):
        rule = f"recommended has {len(recommended):,} rows and truth {len(truth):,}"
        raise DataError(Problem(rule, remedy="pass the same queries to both"))
    # One number per (query, item) pair: membership becomes one sorted search over all queries.
    width = 1 + max(recommended.max(initial=UNKNOWN), truth.values.max(initial=UNKNOWN))
    queries = np.arange(len(truth))
    wanted = np.repeat(queries, truth.lengths) * width + truth.values
    given = queries[:, None] * width + recommended
    hits: NDArray[np.bool_] = np.isin(given, wanted) & (recommended != UNKNOWN)
    return hits


def precision(hits: NDArray[np.bool_]) -> NDArray[np.float64]:
    """hits / n. Empty places count as misses."""
    shares: NDArray[np.float64] = hits.sum(axis=1) / hits.shape[1]
    return shares


def recall(hits: NDArray[np.bool_], truth: Ragged) -> NDArray[np.float64]:
    """hits / |truth|; 0 for an empty truth."""
    shares: NDArray[np.float64] = hits.sum(axis=1) / np.maximum(truth.lengths, 1)
    return shares


def distinct_recall(hits: NDArray[np.bool_], truth: Ragged) -> NDArray[np.float64]:
    """hits / |set(truth)|; 0 for an empty truth. Equals `recall` where the truth has no repeats.

    Libraries such as ranx and RecTools take the truth as a set and report this figure.
    """
    shares: NDArray[np.float64] = hits.sum(axis=1) / np.maximum(distinct_counts(truth), 1)
    return shares


def f_measure(precision: NDArray[np.float64], recall: NDArray[np.float64]) -> NDArray[np.float64]:
    """2 P R / (P + R) of each query, 0 if both are 0. The mean of these is not the F of the means."""
    total = precision + recall
    return 2 * precision * recall / np.where(total > 0, total, 1.0)


def ndcg(hits: NDArray[np.bool_], truth: Ragged) -> NDArray[np.float64]:
    """DCG / IDCG with DCG = sum of 1 / log2(rank + 1) over the hits; IDCG: min(n, distinct truth) hits on top."""
    n = hits.shape[1]
    discounts = 1 / np.log2(np.arange(2, n + 2))
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])[np.minimum(distinct_counts(truth), n)]
    gains: NDArray[np.float64] = (hits * discounts).sum(axis=1) / np.maximum(ideal, discounts[0])
    return gains


def hit_rate(hits: NDArray[np.bool_]) -> NDArray[np.float64]:
    """1 if at least one of the n is a hit, else 0."""
    return np.asarray(hits.any(axis=1), np.float64)


def reciprocal_rank(hits: NDArray[np.bool_]) -> NDArray[np.float64]:
    """1 / rank of the first hit, 0 without a hit. Its mean is the MRR."""
    first: NDArray[np.float64] = hits.any(axis=1) / (1.0 + hits.argmax(axis=1))
    return first


def recommendation_counts(recommended: NDArray[np.integer], num_items: int) -> NDArray[np.int64]:
    """How many queries each item of the catalogue was recommended to."""
    return np.bincount(recommended[recommended != UNKNOWN], minlength=num_items)


def coverage(counts: NDArray[np.int64]) -> float:
    """Share of the catalogue recommended to at least one query."""
    return float((counts > 0).mean())


def gini(counts: NDArray[np.int64]) -> float:
    """sum_i (2 i - V - 1) k_i / (V sum_i k_i) over the recommendation counts k in rising order, i = 1..V.

    0: every item of the catalogue is recommended equally often; (V - 1) / V: only one item is ever recommended.
    """
    total = counts.sum()
    if total == 0:
        return 0.0
    places = 2 * np.arange(1, len(counts) + 1) - len(counts) - 1
    return float((places * np.sort(counts)).sum() / (len(counts) * total))


def mean_popularity(counts: NDArray[np.int64], item_counts: NDArray[np.int64]) -> float:
    """Mean N_v of the recommended items, their occurrences in the training data."""
    return _weighted_mean(item_counts.astype(np.float64), counts)


def mean_popularity_percentile(counts: NDArray[np.int64], item_counts: NDArray[np.int64]) -> float:
    """Mean percentile of the recommended items: share of the catalogue with a smaller N_v, plus half of the ties."""
    ranked = np.sort(item_counts)
    below = np.searchsorted(ranked, item_counts, side="left")
    upto = np.searchsorted(ranked, item_counts, side="right")
    return _weighted_mean(50.0 * (below + upto) / len(item_counts), counts)


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


def distinct_counts(rows: Ragged) -> NDArray[np.int64]:
    """The number of distinct values of each row."""
    width = 1 + int(rows.values.max(initial=0))
    pairs = np.unique(np.repeat(np.arange(len(rows)), rows.lengths) * width + rows.values)
    return np.bincount(pairs // width, minlength=len(rows))


def _weighted_mean(values: NDArray[np.float64], weights: NDArray[np.int64]) -> float:
    total = weights.sum()
    return float(values @ weights / total) if total else 0.0
