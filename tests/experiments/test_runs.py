"""Run folders: created, trained, resumed and opened."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pathdex.config import Config, RunOptions
from pathdex.data import Interactions, Ragged, Split, Vocabulary, split_users
from pathdex.errors import RunError, StorageError
from pathdex.experiments.runs import Run
from pathdex.storage.folder_lock import folder_lock
from tests.tiny import TINY


@pytest.fixture(scope="module")
def split() -> Split:
    random = np.random.default_rng(0)
    rows = Ragged.from_rows([random.integers(0, 30, 8) for _ in range(40)])
    return split_users(Interactions(rows, Vocabulary(np.arange(40)), Vocabulary(np.arange(30))), test_users=5)


@pytest.fixture(scope="module")
def trained(split: Split, tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("runs") / "run"
    run = Run.create(path, split, Config.from_dict(TINY), RunOptions(threads=1), source="rows.csv")
    run.train(split, callbacks=())
    return run


def test_a_finished_run_holds_its_request_split_log_and_model(trained: Run, split: Split) -> None:
    run = Run.open(trained.path)
    assert run.finished
    assert run.request["source"] == "rows.csv"
    assert run.request["config"]["num_nodes"] == TINY["num_nodes"]
    assert run.split().test.users.ids(range(5)) == split.test.users.ids(range(5))
    phases = [json.loads(line)["phase"] for line in run.log.read_text().splitlines()]
    assert phases == [record["phase"] for record in run.model().records]


def test_training_a_finished_run_returns_its_model(trained: Run) -> None:
    before = trained.checkpoint.stat().st_mtime_ns
    assert trained.train(callbacks=()).get_params() == trained.model().get_params()
    assert trained.checkpoint.stat().st_mtime_ns == before


def test_resuming_rewrites_the_log_from_the_checkpoint(split: Split, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", split, Config.from_dict(TINY), RunOptions(threads=1))
    run.train(split, callbacks=())
    complete = run.log.read_text()
    run.bundle.rename(tmp_path / "aside")
    run.log.write_text(complete[:10])
    run.train(callbacks=())
    assert run.log.read_text() == complete


def test_a_second_trainer_is_rejected_and_changes_nothing(split: Split, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", split, Config.from_dict(TINY), RunOptions(threads=1))
    with (
        folder_lock(run.path, "pathdex train"),
        pytest.raises(StorageError, match=r"is in use by pathdex train \(process \d+ on .*\); wait until it ends"),
    ):
        run.train(split, callbacks=())
    assert not run.checkpoint.exists()
    run.train(split, callbacks=())
    assert run.finished


def test_an_unfinished_run_has_no_model(split: Split, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", split, Config.from_dict(TINY), RunOptions())
    assert not run.finished
    with pytest.raises(RunError, match=r"run is not finished; continue it with: pathdex train --out .* --resume$"):
        run.model()


def test_an_existing_folder_is_refused(trained: Run, split: Split) -> None:
    with pytest.raises(RunError, match=r"exists; continue it with --resume, or choose another folder$"):
        Run.create(trained.path, split, Config(), RunOptions())


def test_a_folder_that_is_not_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"is not a run folder; pass the --out of `pathdex train`$"):
        Run.open(tmp_path / "no")
    with pytest.raises(RunError, match=r"is not a run folder: it has no run.json; pass the --out of `pathdex train`"):
        Run.open(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RunError, match=r"run.json is damaged .*; remove the folder and train again$"):
        Run.open(tmp_path)
