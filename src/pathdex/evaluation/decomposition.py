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

from pathdex import metrics
from pathdex.data.ragged import Ragged
from pathdex.data.splits import Queries
from pathdex.errors import QueryError
from pathdex.evaluation.intervals import ratio_standard_error
from pathdex.evaluation.protocol import check_evaluation, seen_filter, standard_error
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
    candidate_budget: int | None
    """The limit on candidates."""
    filter_seen: bool
    candidates: float
    """The candidates found, mean per user."""
    kept: float
    """Share of brute force's top n that is among the candidates."""
    kept_by_popularity: Mapping[str, float | None]
    """The same share by occurrences in training; None if brute force recommends no such item."""
    f_brute_force: float
    f_structure: float
    f_final: float
    f_brute_force_standard_error: float
    """Over the users, as the next two."""
    f_structure_standard_error: float
    f_final_standard_error: float
    kept_by_popularity_standard_error: Mapping[str, float | None]
    """Over the users; None if fewer than two have such an item."""

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
        return {**vars(self), "structure_ratio": self.structure_ratio, "final_ratio": self.final_ratio}


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
    parts: dict[tuple[int, bool], list[tuple[NDArray[Any], ...]]] = {
        (number, filter_seen): [] for number in range(len(options)) for filter_seen in (True, False)
    }
    for done, filter_seen in ((0, True), (len(queries), False)):
        for rows in row_blocks(len(queries), batch):
            histories, truth = queries.history.take(rows), queries.truth.take(rows)
            filters = seen_filter(histories, filter_seen)
            top = brute_force.rank(histories, n, filters).items
            for number, one in enumerate(options):
                candidates = model.candidate_items(histories, filters, n=n, **one)
                structure = brute_force.rank_candidates(histories, candidates, n).items
                final = model.rank(histories, n, filters, **one).items
                kept = metrics.hit_matrix(top, candidates)
                # -1 marks the places of users with fewer than n items.
                occurrences = np.where(top >= 0, item_counts[top], -1)
                f = (_f_measure(items, truth) for items in (top, structure, final))
                parts[number, filter_seen].append((candidates.lengths, occurrences, kept, *f))
            if progress is not None:
                progress(done + int(rows[-1]) + 1, 2 * len(queries))
    losses = (_loss(options[number], filter_seen, found) for (number, filter_seen), found in parts.items())
    return Decomposition(n, len(queries), tuple(losses))


def _f_measure(items: NDArray[np.int64], truth: Ragged) -> NDArray[np.float64]:
    hits = metrics.hit_matrix(items, truth)
    return metrics.f_measure(metrics.precision(hits), metrics.recall(hits, truth))


def _loss(options: Mapping[str, Any], filter_seen: bool, parts: Sequence[tuple[NDArray[Any], ...]]) -> Loss:
    """Join the batches: candidates, occurrences of brute force's items, whether they are kept, and three F."""
    candidates, occurrences, kept, *f_measures = (np.concatenate(column) for column in zip(*parts, strict=True))
    brute_force, structure, final = f_measures
    shares, errors = {}, {}
    for low, high in POPULARITY_BUCKETS:
        among = (occurrences >= low) & (occurrences <= (np.inf if high is None else high))  # (user, place)
        own, name = kept[among], bucket_name(low, high)
        shares[name] = float(own.mean()) if len(own) else None
        errors[name] = ratio_standard_error((kept & among).sum(axis=1), among.sum(axis=1))
    known = kept[occurrences >= 0]
    return Loss(
        beam=options.get("beam"),
        candidate_budget=options.get("candidates"),
        filter_seen=filter_seen,
        candidates=float(candidates.mean()),
        kept=float(known.mean()) if len(known) else 1.0,
        kept_by_popularity=shares,
        f_brute_force=float(brute_force.mean()),
        f_structure=float(structure.mean()),
        f_final=float(final.mean()),
        f_brute_force_standard_error=standard_error(brute_force),
        f_structure_standard_error=standard_error(structure),
        f_final_standard_error=standard_error(final),
        kept_by_popularity_standard_error=errors,
    )


def bucket_name(low: int, high: int | None) -> str:
    return f"{low}+" if high is None else f"{low}-{high}"
