"""A worker of Ray Train, called without Ray."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pathdex
from pathdex.config import Config, RunOptions
from pathdex.data import Interactions, Ragged, Vocabulary, split_users
from pathdex.errors import StorageError, WorkerError
from pathdex.experiments.ray_worker import Message, WorkerJob, check_node, train_share
from pathdex.experiments.runs import Run
from pathdex.storage.folder_lock import folder_lock
from tests.tiny import TINY


class Messages(list[Message]):
    """Takes messages like a queue of Ray."""

    put = list.append

    def of(self, kind: str) -> list[Any]:
        return [one.content for one in self if one.kind == kind]


@pytest.fixture
def job(tmp_path: Path) -> WorkerJob:
    random = np.random.default_rng(0)
    rows = Ragged.from_rows([random.integers(0, 30, 8) for _ in range(40)])
    data = Interactions(rows, Vocabulary(np.arange(40)), Vocabulary(np.arange(30)))
    folder = tmp_path / "run"
    Run.create(folder, split_users(data, test_users=5), Config.from_dict(TINY), RunOptions(threads=1))
    request = Run.open(folder).request
    return WorkerJob(folder, request, pathdex.__version__, 60.0, (), Messages(), {"MLFLOW_EXPERIMENT_NAME": "one"})


def test_one_worker_trains_a_folder_that_its_caller_has_locked(job: WorkerJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "another")
    with folder_lock(job.folder, "pathdex train --ray"):
        train_share({"job": job})
    assert Run.open(job.folder).finished
    assert job.messages[0].kind == "start"
    assert job.messages.of("epoch") == [json.loads(line) for line in Run.open(job.folder).log.read_text().splitlines()]
    assert job.messages.of("step")[0].phase == "encoder"
    assert os.environ["MLFLOW_EXPERIMENT_NAME"] == "one"


def test_warnings_are_told_and_not_printed(job: WorkerJob, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(self: Run, **_: object) -> None:
        warnings.warn("few users", pathdex.errors.AccuracyWarning, stacklevel=2)
        warnings.warn("of no interest", DeprecationWarning, stacklevel=2)

    monkeypatch.setattr(Run, "train", warn)
    with warnings.catch_warnings(record=True) as printed:
        warnings.simplefilter("default")  # In tests, warnings are errors.
        train_share({"job": job})
    assert [str(one) for one in job.messages.of("warning")] == ["few users"]
    assert not printed


def test_an_error_is_told_with_its_traceback_and_ends_the_worker(
    job: WorkerJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Run, **_: object) -> None:
        raise StorageError("no space")

    monkeypatch.setattr(Run, "train", fail)
    with pytest.raises(StorageError, match="no space"):
        train_share({"job": job})
    ((error, where),) = job.messages.of("error")
    assert str(error) == "no space"
    assert "in fail" in where


def test_a_node_with_another_version(job: WorkerJob) -> None:
    with pytest.raises(WorkerError, match=r"node .* has pathdex .*, not 0\.0\.7; install the same on all nodes"):
        check_node(replace(job, version="0.0.7"))


@pytest.mark.parametrize("change", [{"folder": Path("/nowhere/run")}, {"request": {"config": "of another run"}}])
def test_a_node_that_does_not_see_the_folder(job: WorkerJob, change: dict[str, Any]) -> None:
    with pytest.raises(WorkerError, match=r"node .* does not see .*run; put the run folder on storage that all nodes"):
        check_node(replace(job, **change))
