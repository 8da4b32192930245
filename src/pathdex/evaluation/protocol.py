"""The protocol of the paper's experiments: every method answers the same queries, with and without seen items."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.data.splits import Queries
from pathdex.errors import DataError, QueryError
from pathdex.evaluation import metrics
from pathdex.recommenders.base import Recommender
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, join_rankings, row_blocks
from pathdex.storage.json_file import write_json

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a label, the queries answered so far and the queries in all."""


class Method(NamedTuple):
    """A recommender under a name, with the options of `rank` (such as `beam` or `candidates`) it is asked with."""

    name: str
    recommender: Recommender
    options: Mapping[str, Any] = {}


@dataclass(frozen=True, eq=False)
class Result:
    """One method at one setting."""

    method: str
    options: Mapping[str, Any]
    filter_seen: bool
    figures: Mapping[str, float]
    """Means over the users, and figures of the answers as a whole."""
    per_user: Mapping[str, NDArray[np.float64]] = field(repr=False)
    """(user,) values behind the means, in the order of the queries, for paired tests."""

    def row(self) -> dict[str, Any]:
        """The result as one flat row of the JSON."""
        return {
            "method": self.method,
            "beam": self.options.get("beam"),
            "candidate_budget": self.options.get("candidates"),
            "candidates": self.figures["candidates"],
            "max_candidates": self.figures["max_candidates"],
            "filter_seen": self.filter_seen,
            **self.figures,
        }


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What every method got, on the same queries."""

    n: int
    users: int
    results: tuple[Result, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"n": self.n, "users": self.users, "results": [result.row() for result in self.results]}

    def to_json(self, path: str | Path) -> Path:
        """Write `to_dict` as JSON: all of it, or nothing and a `StorageError`."""
        return write_json(Path(path), self.to_dict())


def evaluate(
    methods: Sequence[Method],
    queries: Queries,
    *,
    n: int,
    item_counts: NDArray[np.int64],
    batch: int = 1024,
    progress: Progress | None = None,
) -> Evaluation:
    """Ask every method every query twice: all items allowed, and the query's whole history removed.

    Precision, recall and F are taken per user and then averaged; `candidates` is the measured mean per user.
    `item_counts` is how often each item of the catalogue occurs in the training data.
    """
    if not methods:
        raise QueryError("methods is empty: must name at least one; pass [Method(name, recommender)]")
    check_evaluation(queries, n, item_counts, batch)
    total = 2 * len(methods) * len(queries)
    results: list[Result] = []
    for method in methods:
        for filter_seen in (True, False):
            done = len(results) * len(queries)
            ranking = rank_in_batches(
                method.recommender,
                queries.history,
                n,
                filter_seen=filter_seen,
                batch=batch,
                options=method.options,
                report=_counter(progress, method.name, done, total),
            )
            results.append(_result(method, filter_seen, ranking, queries.truth, item_counts))
    return Evaluation(n, len(queries), tuple(results))


def _counter(progress: Progress | None, label: str, done: int, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda answered: progress(label, done + answered, total)


def rank_in_batches(
    recommender: Recommender,
    histories: Ragged,
    n: int,
    *,
    filter_seen: bool,
    batch: int,
    options: Mapping[str, Any],
    report: Callable[[int], None] | None = None,
) -> Ranking:
    """`rank` over all queries, `batch` at a time; `report` hears how many are answered."""
    parts = []
    for rows in row_blocks(len(histories), batch):
        asked = histories.take(rows)
        parts.append(recommender.rank(asked, n, seen_filter(asked, filter_seen), **options))
        if report is not None:
            report(int(rows[-1]) + 1)
    return join_rankings(parts)


def seen_filter(histories: Ragged, filter_seen: bool) -> Filters:
    """Leave out all of each query's history, or nothing."""
    return Filters(exclude=histories) if filter_seen else NO_FILTERS


def check_evaluation(queries: Queries, n: int, item_counts: NDArray[np.int64], batch: int) -> None:
    """Raise for what cannot be evaluated."""
    for name, value in (("n", n), ("batch", batch)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise QueryError(f"{name}={value!r}: must be a whole number of at least 1")
    if not len(queries):
        raise DataError("queries is empty: must hold at least one user; hold out more test users")
    if not queries.truth.lengths.all():
        empty = int((queries.truth.lengths == 0).sum())
        raise DataError(f"{empty:,} queries have an empty truth: must hold at least one item; leave these users out")
    highest = int(max(queries.history.values.max(initial=0), queries.truth.values.max()))
    if highest >= len(item_counts):
        raise DataError(
            f"item_counts has {len(item_counts):,} entries, but the queries hold item code {highest:,}: must count "
            "the whole catalogue; pass split.train.item_counts() of the same split"
        )


def _result(
    method: Method, filter_seen: bool, ranking: Ranking, truth: Ragged, item_counts: NDArray[np.int64]
) -> Result:
    hits = metrics.hit_matrix(ranking.items, truth)
    precision, recall = metrics.precision(hits), metrics.recall(hits, truth)
    per_user = {
        "precision": precision,
        "recall": recall,
        "f_measure": metrics.f_measure(precision, recall),
        "ndcg": metrics.ndcg(hits, truth),
        "hit_rate": metrics.hit_rate(hits),
        "mrr": metrics.reciprocal_rank(hits),
        "candidates": ranking.candidates.astype(np.float64),
    }
    counts = metrics.recommendation_counts(ranking.items, len(item_counts))
    figures = {name: float(values.mean()) for name, values in per_user.items()}
    figures |= {
        "max_candidates": int(ranking.candidates.max()),
        "f_measure_standard_error": standard_error(per_user["f_measure"]),
        "coverage": metrics.coverage(counts),
        "gini": metrics.gini(counts),
        "mean_popularity": metrics.mean_popularity(counts, item_counts),
        "mean_popularity_percentile": metrics.mean_popularity_percentile(counts, item_counts),
    }
    return Result(method.name, dict(method.options), filter_seen, figures, per_user)


def standard_error(values: NDArray[np.float64]) -> float:
    """Sample standard deviation / sqrt(count); 0 for one value."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
