"""Compare two runs with the same held-out users, user by user."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pathdex.data.splits import Queries, Split
from pathdex.data.vocabulary import Id
from pathdex.errors import QueryError, RunError
from pathdex.evaluation.comparison import held_out_queries
from pathdex.evaluation.protocol import Evaluation, Method, evaluate
from pathdex.evaluation.significance import PairedTest, holm, paired_test
from pathdex.experiments.runs import Run
from pathdex.progress import Progress
from pathdex.storage.json_file import write_json

METRICS = ("precision", "recall", "f_measure", "ndcg", "hit_rate", "mrr")


@dataclass(frozen=True)
class Difference:
    """One metric of both runs and the test of their difference."""

    metric: str
    filter_seen: bool
    a: float
    b: float
    test: PairedTest
    """Of `a - b`."""
    p_holm: float
    """Corrected for the number of metrics."""

    def row(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "filter_seen": self.filter_seen,
            "a": self.a,
            "b": self.b,
            "difference": self.test.difference,
            "low": self.test.low,
            "high": self.test.high,
            "p": self.test.p,
            "p_holm": self.p_holm,
        }


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
        rows = [difference.row() for difference in self.differences]
        return {**vars(self), "differences": rows}

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
    splits = a.split(), b.split()
    users = _check_same(a, b, (held_out_queries(splits[0], on), held_out_queries(splits[1], on)), splits)
    first, second = (_evaluate(run, split, on, n, options, progress) for run, split in zip((a, b), splits, strict=True))
    differences: list[Difference] = []
    for own, other in zip(first.results, second.results, strict=True):
        tests = [paired_test([own.per_user[name]], [other.per_user[name]], [users]) for name in METRICS]
        corrected = holm([test.p for test in tests])
        differences += [
            Difference(name, own.filter_seen, own.figures[name], other.figures[name], test, p)
            for name, test, p in zip(METRICS, tests, corrected, strict=True)
        ]
    return RunComparison(str(a.path), str(b.path), on, n, first.users, options, tuple(differences))


def _evaluate(
    run: Run, split: Split, on: str, n: int, options: dict[str, Any], progress: Progress | None
) -> Evaluation:
    method = Method(str(run.path), run.model(), options)
    counts = split.train.item_counts()
    return evaluate([method], held_out_queries(split, on), n=n, item_counts=counts, progress=progress)


def _check_same(a: Run, b: Run, queries: tuple[Queries, Queries], splits: tuple[Split, Split]) -> list[Id]:
    """The ids of the held-out users. Raises `RunError` unless both runs hold out the same histories and truths."""
    users, others = (one.users.ids(np.arange(len(one))) for one in queries)
    if users != others:
        common = len(set(users) & set(others))
        raise RunError(
            f"{a.path} and {b.path} hold out different users ({len(users):,} and {len(others):,}, {common:,} in "
            "common), so they cannot be compared user by user; train both on the same data with the same split and seed"
        )
    for part in ("history", "truth"):
        rows, other_rows = (getattr(one, part) for one in queries)
        same = np.array_equal(rows.offsets, other_rows.offsets) and (
            splits[0].train.items.ids(rows.values) == splits[1].train.items.ids(other_rows.values)
        )
        if not same:
            raise RunError(
                f"{a.path} and {b.path} hold out the same users with a different {part}, so they cannot be compared; "
                "train both on the same data, read and split in the same way"
            )
    return users
