"""Where retrieval loses accuracy: three figures on the same queries.

brute force   all items by the reranker's score: the ceiling of this encoder and reranker
structure     the candidates of the index by the same score: shows what the paths lose
final         the model's own answer: shows what mixing in the path probability gains or costs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.data.splits import Queries
from pathdex.errors import QueryError
from pathdex.evaluation import metrics
from pathdex.evaluation.protocol import check_evaluation, seen_filter
from pathdex.progress import Progress
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.capabilities import HasIndex
from pathdex.retrieval.ranking import row_blocks
from pathdex.storage.json_file import write_json

POPULARITY_BUCKETS = ((0, 1), (2, 4), (5, 9), (10, 19), (20, 49), (50, None))
"""Occurrences of an item in the training data: from, up to and including."""


@dataclass(frozen=True)
class Loss:
    """The retrieval loss of one beam or number of candidates. F-measures are means over the users."""

    beam: int | None
    candidates: int | None
    """The limit on candidates."""
    filter_seen: bool
    mean_candidates: float
    """The candidates found, mean per user."""
    kept: float
    """Share of brute force's top n that is among the candidates."""
    kept_by_popularity: Mapping[str, float | None]
    """The same share by occurrences in training; None if brute force recommends no such item."""
    f_brute_force: float
    f_structure: float
    f_final: float

    @property
    def structure_ratio(self) -> float | None:
        """F over the candidates as a share of brute force's; None if that is 0."""
        return self.f_structure / self.f_brute_force if self.f_brute_force else None

    @property
    def final_ratio(self) -> float | None:
        """F of the model's answer as a share of brute force's; None if that is 0."""
        return self.f_final / self.f_brute_force if self.f_brute_force else None

    def row(self) -> dict[str, Any]:
        """One row of the JSON."""
        return {
            "beam": self.beam,
            "candidate_budget": self.candidates,
            "filter_seen": self.filter_seen,
            "candidates": self.mean_candidates,
            "kept": self.kept,
            "kept_by_popularity": dict(self.kept_by_popularity),
            "f_brute_force": self.f_brute_force,
            "f_structure": self.f_structure,
            "f_final": self.f_final,
            "structure_ratio": self.structure_ratio,
            "final_ratio": self.final_ratio,
        }


@dataclass(frozen=True)
class Decomposition:
    """The loss for each set of query options, on the same queries."""

    n: int
    users: int
    losses: tuple[Loss, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"n": self.n, "users": self.users, "losses": [loss.row() for loss in self.losses]}

    def to_json(self, path: str | Path) -> Path:
        """Write `to_dict` as JSON, atomically."""
        return write_json(Path(path), self.to_dict())


def decompose(
    model: HasIndex,
    brute_force: BruteForce,
    queries: Queries,
    *,
    n: int,
    item_counts: NDArray[np.int64],
    options: Sequence[Mapping[str, Any]],
    batch: int = 1024,
    progress: Progress | None = None,
) -> Decomposition:
    """The retrieval loss of `model` for each set of options, such as `{"beam": 5}` or `{"candidates": 100}`.

    `brute_force` must score with the model's own vectors: `BruteForce(model)`. Seen items are removed and kept, as in
    `evaluate`.
    """
    if not options:
        raise QueryError(
            "must hold at least one set of options",
            argument="options",
            value=[],
            remedy="pass [{'candidates': 100}] or [{'beam': 50}]",
        )
    check_evaluation(queries, n, item_counts, batch)
    total = 2 * len(queries)
    tallies = {(number, seen): _Tally() for seen in (True, False) for number in range(len(options))}
    for part, filter_seen in enumerate((True, False)):
        for rows in row_blocks(len(queries), batch):
            histories, truth = queries.history.take(rows), queries.truth.take(rows)
            filters = seen_filter(histories, filter_seen)
            ceiling = brute_force.rank(histories, n, filters).items
            for number, one in enumerate(options):
                candidates = model.candidate_items(histories, filters, n=n, **one)
                tallies[number, filter_seen].add(
                    candidates,
                    ceiling,
                    brute_force.rank_candidates(histories, candidates, n).items,
                    model.rank(histories, n, filters, **one).items,
                    truth,
                )
            if progress is not None:
                progress(part * len(queries) + int(rows[-1]) + 1, total)
    losses = tuple(
        tallies[number, seen].loss(one, seen, item_counts)
        for number, one in enumerate(options)
        for seen in (True, False)
    )
    return Decomposition(n, len(queries), losses)


class _Tally:
    """Sums over the batches for one set of options."""

    def __init__(self) -> None:
        self.candidates: list[NDArray[np.int64]] = []
        self.top: list[NDArray[np.int64]] = []
        self.inside: list[NDArray[np.bool_]] = []
        self.f: dict[str, list[NDArray[np.float64]]] = {"brute_force": [], "structure": [], "final": []}

    def add(
        self,
        candidates: Ragged,
        ceiling: NDArray[np.int64],
        structure: NDArray[np.int64],
        final: NDArray[np.int64],
        truth: Ragged,
    ) -> None:
        real = ceiling >= 0
        self.candidates.append(candidates.lengths)
        self.top.append(ceiling[real])
        self.inside.append(metrics.hit_matrix(ceiling, candidates)[real])
        for name, items in (("brute_force", ceiling), ("structure", structure), ("final", final)):
            hits = metrics.hit_matrix(items, truth)
            self.f[name].append(metrics.f_measure(metrics.precision(hits), metrics.recall(hits, truth)))

    def loss(self, options: Mapping[str, Any], filter_seen: bool, item_counts: NDArray[np.int64]) -> Loss:
        inside = np.concatenate(self.inside)
        occurrences = item_counts[np.concatenate(self.top)]
        means = {name: float(np.concatenate(parts).mean()) for name, parts in self.f.items()}
        return Loss(
            beam=options.get("beam"),
            candidates=options.get("candidates"),
            filter_seen=filter_seen,
            mean_candidates=float(np.concatenate(self.candidates).mean()),
            kept=float(inside.mean()) if len(inside) else 1.0,
            kept_by_popularity={
                bucket_name(low, high): _share(inside, occurrences, low, high) for low, high in POPULARITY_BUCKETS
            },
            f_brute_force=means["brute_force"],
            f_structure=means["structure"],
            f_final=means["final"],
        )


def _share(inside: NDArray[np.bool_], occurrences: NDArray[np.int64], low: int, high: int | None) -> float | None:
    chosen = inside[(occurrences >= low) & (occurrences <= (np.inf if high is None else high))]
    return float(chosen.mean()) if len(chosen) else None


def bucket_name(low: int, high: int | None) -> str:
    return f"{low}+" if high is None else f"{low}-{high}"
