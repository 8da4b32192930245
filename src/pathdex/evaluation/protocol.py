"""The paper's protocol: every method answers the same queries, with seen items removed and kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pathdex import metrics
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.source_table import Source
from pathdex.data.splits import Queries
from pathdex.errors import DataError, Problem, QueryError
from pathdex.evaluation.own_data import own_queries
from pathdex.progress import Progress
from pathdex.recommenders.arguments import check_positive
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.item_list import as_library, html_table
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, join_rankings, row_blocks
from pathdex.storage.json_file import write_json


class Method(NamedTuple):
    """A named recommender and its query options, such as `beam` or `candidates`."""

    name: str
    recommender: Recommender
    options: Mapping[str, Any] = {}


@dataclass(frozen=True, eq=False)
class MethodResult:
    """The figures of one method with one set of query options."""

    method: str
    options: Mapping[str, Any]
    filter_seen: bool
    figures: Mapping[str, float]
    """Means over the users, and figures of all answers together."""
    per_user: Mapping[str, NDArray[np.float64]] = field(repr=False)
    """The values behind the means, (user,), in the order of the queries."""

    def row(self) -> dict[str, Any]:
        """One row of the JSON."""
        return {
            "method": self.method,
            "beam": self.options.get("beam"),
            "candidate_budget": self.options.get("candidates"),
            "candidates": self.figures["candidates"],
            "max_candidates": self.figures["max_candidates"],
            "filter_seen": self.filter_seen,
            **self.figures,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The results of all methods on the same queries."""

    n: int
    users: int
    results: tuple[MethodResult, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"n": self.n, "users": self.users, "results": [result.row() for result in self.results]}

    def to_json(self, path: str | Path) -> Path:
        """Write `to_dict` as JSON, atomically."""
        return write_json(Path(path), self.to_dict())

    def to_frame(self, library: str = "polars") -> Any:
        """A row per method, set of options and treatment of seen items; a polars or pandas frame."""
        return as_library(pl.DataFrame(self.to_dict()["results"], infer_schema_length=None), library)

    def __repr__(self) -> str:
        shown = [one for one in self.results if one.filter_seen]
        figures = ", ".join(f"{one.method} {100 * one.figures['f_measure']:.2f}" for one in shown)
        return f"Evaluation(top {self.n} for {self.users:,} users, F in % with seen items removed: {figures})"

    def _repr_html_(self) -> str:
        return html_table(self.to_frame())


def evaluate(
    methods: Sequence[Method] | Recommender,
    queries: Queries | Interactions | Source,
    *,
    n: int = 10,
    history: Interactions | Source | None = None,
    item_counts: NDArray[np.int64] | None = None,
    batch: int = 1024,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate every method on the same queries, once with seen items removed and once with seen items kept.

    Precision, recall and F are computed per user and then averaged; `candidates` is the measured mean per user.
    `methods` may be one model. `queries` are those of a split over the models' catalogue, or test data of your own (see
    `own_queries`): what follows the `history` data, or without it the second half of each user's rows.
    `item_counts` holds the occurrences of each item in the training data; without it, those in the histories.
    """
    if isinstance(methods, Recommender):
        methods = [Method(methods.name, methods)]
    if not methods:
        raise QueryError(
            "must name at least one", argument="methods", value=[], remedy="pass [Method(name, recommender)]"
        )
    model = methods[0].recommender
    if not isinstance(queries, Queries):
        queries = own_queries(model, queries, history=history)
    elif history is not None:
        raise QueryError("queries have histories already", argument="history", value=history, remedy="leave it out")
    if item_counts is None:
        item_counts = np.bincount(queries.history.values, minlength=len(model.items))
    check_evaluation(queries, n, item_counts, batch)
    total = 2 * len(methods) * len(queries)
    results: list[MethodResult] = []
    for method in methods:
        for filter_seen in (True, False):
            done = len(results) * len(queries)
            shown = None if progress is None else _offset(progress, done, total)
            results.append(
                evaluate_method(
                    method, queries, n=n, item_counts=item_counts, filter_seen=filter_seen, batch=batch, progress=shown
                )
            )
    return Evaluation(n, len(queries), tuple(results))


def _offset(progress: Progress, before: int, total: int) -> Progress:
    return lambda done, _: progress(before + done, total)


def rank_in_batches(
    method: Method, histories: Ragged, n: int, *, filter_seen: bool, batch: int = 1024, progress: Progress | None = None
) -> Ranking:
    """`rank` over all queries, `batch` at a time."""
    parts = []
    for rows in row_blocks(len(histories), batch):
        queries = histories.take(rows)
        parts.append(method.recommender.rank(queries, n, seen_filter(queries, filter_seen), **method.options))
        if progress is not None:
            progress(int(rows[-1]) + 1, len(histories))
    return join_rankings(parts)


def seen_filter(histories: Ragged, filter_seen: bool) -> Filters:
    """Exclude each query's whole history, or nothing."""
    return Filters(exclude=histories) if filter_seen else NO_FILTERS


def check_evaluation(queries: Queries, n: int, item_counts: NDArray[np.int64], batch: int) -> None:
    """Raise if the queries cannot be evaluated."""
    check_positive("n", n, "ask for one item or more")
    check_positive("batch", batch, "answer one query or more at a time")
    if not len(queries):
        raise DataError(Problem("must hold at least one user", "queries", queries, "hold out more test users"))
    if not queries.truth.lengths.all():
        empty = int((queries.truth.lengths == 0).sum())
        raise DataError(Problem(f"{empty:,} queries have an empty truth", remedy="leave these users out"))
    highest = int(max(queries.history.values.max(initial=0), queries.truth.values.max()))
    if highest >= len(item_counts):
        rule = f"item_counts has {len(item_counts):,} entries, but the queries hold item code {highest:,}"
        raise DataError(Problem(rule, remedy="pass split.train.item_counts() of the same split"))


def evaluate_method(
    method: Method,
    queries: Queries,
    *,
    n: int,
    item_counts: NDArray[np.int64],
    filter_seen: bool,
    batch: int = 1024,
    progress: Progress | None = None,
) -> MethodResult:
    """Evaluate one method, with seen items removed or kept."""
    ranking = rank_in_batches(method, queries.history, n, filter_seen=filter_seen, batch=batch, progress=progress)
    truth = queries.truth
    hits = metrics.hit_matrix(ranking.items, truth)
    precision, recall = metrics.precision(hits), metrics.recall(hits, truth)
    per_user = {
        "precision": precision,
        "recall": recall,
        "distinct_recall": metrics.distinct_recall(hits, truth),
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
    return MethodResult(method.name, dict(method.options), filter_seen, figures, per_user)


def standard_error(values: NDArray[np.float64]) -> float:
    """Sample standard deviation / sqrt(count); 0 for one value."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
