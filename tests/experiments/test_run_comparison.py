"""Two runs user by user: who wins, and which pairs cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathdex.config import Config, RunOptions
from pathdex.data import Interactions, Ragged, Split, Vocabulary, split_users
from pathdex.errors import QueryError, RunError
from pathdex.experiments.run_comparison import METRICS, compare_runs
from pathdex.experiments.runs import Run
from tests.tiny import TINY


def blocks(first_id: int = 0) -> Interactions:
    """160 users, each of whom takes items of one of four groups."""
    random = np.random.default_rng(0)
    rows = [random.integers(0, 8, 12) + 8 * (user % 4) for user in range(160)]
    return Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(160)), Vocabulary(first_id + np.arange(32)))


def make(path: Path, split: Split, **parameters: Any) -> Run:
    run = Run.create(path, split, Config.from_dict({**TINY, **parameters}), RunOptions(threads=1))
    run.train()
    return run


@pytest.fixture(scope="module")
def split() -> Split:
    return split_users(blocks(), valid_users=6, test_users=60, seed=0)


@pytest.fixture(scope="module")
def runs(split: Split, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("runs")
    trained = make(folder / "trained", split, epochs=6, learning_rate=0.02, neighbours=0)
    return trained, make(folder / "untrained", split, epochs=0, rounds=0, neighbours=0)


def test_the_trained_run_wins_and_the_order_turns_the_sign(runs: tuple[Run, Run], tmp_path: Path) -> None:
    there, back = compare_runs(*runs, n=3), compare_runs(*reversed(runs), n=3)
    assert [(one.metric, one.filter_seen) for one in there.differences] == [
        (metric, seen) for seen in (True, False) for metric in METRICS
    ]
    assert (there.users, there.n, there.options) == (60, 3, {"candidates": 30})
    for one, other in zip(there.differences, back.differences, strict=True):
        assert one.test.difference == pytest.approx(one.a - one.b)
        assert (one.a, one.b, one.test.p) == (other.b, other.a, other.test.p)
        assert one.test.low == pytest.approx(-other.test.high)
        assert one.test.p_holm >= one.test.p
    f = next(one for one in there.differences if one.metric == "f_measure" and not one.filter_seen)
    assert f.test.difference > 0
    assert f.test.p < 0.05
    written = json.loads(there.to_json(tmp_path / "d.json").read_text())
    assert set(written) == {"a", "b", "on", "n", "users", "options", "differences"}
    assert len(written["differences"]) == 14


def test_the_validation_users_and_a_beam(runs: tuple[Run, Run]) -> None:
    found = compare_runs(*runs, on="valid", n=2, beam=1)
    assert (found.users, found.options) == (6, {"beam": 1})


def test_a_run_is_not_compared_with_itself(runs: tuple[Run, Run]) -> None:
    with pytest.raises(QueryError, match=r"^RUN_A and RUN_B are both .*; pass two runs$"):
        compare_runs(runs[0], runs[0])


def test_other_users_are_refused(runs: tuple[Run, Run], tmp_path: Path) -> None:
    other = make(tmp_path / "run", split_users(blocks(), test_users=10, seed=1), epochs=0, rounds=0)
    with pytest.raises(RunError, match=r"hold out different users \(60 and 10, \d in common\).*same split and seed$"):
        compare_runs(runs[0], other)


def test_other_items_behind_the_same_users_are_refused(runs: tuple[Run, Run], tmp_path: Path) -> None:
    renamed = split_users(blocks(first_id=100), valid_users=6, test_users=60, seed=0)
    other = make(tmp_path / "run", renamed, epochs=0, rounds=0)
    with pytest.raises(RunError, match=r"hold out the same users with a different history, so they cannot be compared"):
        compare_runs(runs[0], other)
