"""Compare two runs with the same held-out users, user by user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pathdex.data.splits import Queries, Split
from pathdex.data.vocabulary import Id
from pathdex.errors import QueryError, RunError
from pathdex.evaluation.comparison import held_out_queries
from pathdex.evaluation.protocol import Method, evaluate
from pathdex.evaluation.significance import PairedTest, paired_tests
from pathdex.experiments.runs import Run
from pathdex.progress import Progress
from pathdex.storage.json_file import write_json

METRICS = ("precision", "recall", "distinct_recall", "f_measure", "ndcg", "hit_rate", "mrr")


@dataclass(frozen=True)
class Difference:
    """One metric of both runs and the test of their difference."""

    metric: str
    filter_seen: bool
    a: float
    b: float
    test: PairedTest
    """Of `a - b`, corrected for the number of metrics."""

    def row(self) -> dict[str, Any]:
        """One row of the JSON."""
        tested = {key: getattr(self.test, key) for key in ("difference", "low", "high", "p", "p_holm")}
        return {"metric": self.metric, "filter_seen": self.filter_seen, "a": self.a, "b": self.b, **tested}


@dataclass(frozen=True)
class RunComparison:
    """Two runs on the same users."""

    a: str
    b: str
    on: str
    n: int
    users: int
    options: dict[str, Any]
    differences: tuple[Difference, ...]

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "differences": [difference.row() for difference in self.differences]}

    def to_json(self, path: str | Path) -> Path:
        """Write `to_dict` as JSON, atomically."""
        return write_json(Path(path), self.to_dict())


def compare_runs(
    a: Run, b: Run, *, on: str = "test", n: int = 10, progress: Progress | None = None, **options: Any
) -> RunComparison:
    """Evaluate both models on their held-out users, which must be the same, with the same `beam` or `candidates`.

    The default is ten times n candidates.
    """
    if a.path.resolve() == b.path.resolve():
        raise QueryError(f"RUN_A and RUN_B are both {a.path}", remedy="pass two runs")
    options = options or {"candidates": 10 * n}
    runs, splits = (a, b), (a.split(), b.split())
    queries = [held_out_queries(split, on) for split in splits]
    users = _check_same(runs, splits, queries)
    first, second = (
        evaluate(
            [Method(str(run.path), run.model(), options)],
            held_out,
            n=n,
            item_counts=split.train.item_counts(),
            progress=progress,
        )
        for run, split, held_out in zip(runs, splits, queries, strict=True)
    )
    differences: list[Difference] = []
    for own, other in zip(first.results, second.results, strict=True):
        tests = paired_tests([([own.per_user[name]], [other.per_user[name]]) for name in METRICS], [users])
        differences += [
            Difference(name, own.filter_seen, own.figures[name], other.figures[name], test)
            for name, test in zip(METRICS, tests, strict=True)
        ]
    return RunComparison(str(a.path), str(b.path), on, n, first.users, options, tuple(differences))


def _check_same(runs: tuple[Run, Run], splits: tuple[Split, Split], queries: Sequence[Queries]) -> list[Id]:
    """The ids of the held-out users. Raises `RunError` unless both runs hold out the same histories and truths."""
    names = f"{runs[0].path} and {runs[1].path}"
    users, others = (one.users.ids(np.arange(len(one))) for one in queries)
    if users != others:
        common = len(set(users) & set(others))
        raise RunError(
            f"{names} hold out different users ({len(users):,} and {len(others):,}, {common:,} in "
            "common), so they cannot be compared user by user; train both on the same data with the same split and seed"
        )
    for part in ("history", "truth"):
        rows, other_rows = (getattr(one, part) for one in queries)
        items, other_items = (split.train.items.ids for split in splits)
        if not np.array_equal(rows.offsets, other_rows.offsets) or items(rows.values) != other_items(other_rows.values):
            raise RunError(
                f"{names} hold out the same users with a different {part}, so they cannot be compared; "
                "train both on the same data, read and split in the same way"
            )
    return users
