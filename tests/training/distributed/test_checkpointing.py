"""A checkpoint of 2 workers, continued by 3, is finished by one process with the result of an uninterrupted one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pathdex.errors import RunError
from pathdex.training.trainer import Trainer
from tests.training.distributed.conftest import JOBS, Workers
from tests.training.distributed.program import train


def copied(workers: Workers, folder: Path) -> Path:
    for file in workers.folder.glob("begun*"):
        shutil.copy(file, folder)
    return folder / workers.checkpoint.name


def test_any_number_of_workers_continues(workers: Workers, alone: Callable[[int], Trainer], tmp_path: Path) -> None:
    checkpoint, whole = copied(workers, tmp_path), alone(0)
    assert len(list(tmp_path.glob("begun.*-of-3.safetensors"))) == 3
    assert not list(tmp_path.glob("begun.*-of-2.safetensors"))
    resumed = train({**JOBS[0], "checkpoint": str(checkpoint), "resume": True}, None)
    np.testing.assert_array_equal(resumed.paths, whole.paths)
    for name, value in whole.weights.items():
        np.testing.assert_allclose(resumed.weights[name], value, rtol=1e-2, atol=1e-4)
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint.name]


def test_a_missing_or_foreign_shard_is_an_error(workers: Workers, tmp_path: Path) -> None:
    checkpoint = copied(workers, tmp_path)
    job = {**JOBS[0], "checkpoint": str(checkpoint), "resume": True}
    first, second, _ = sorted(tmp_path.glob("begun.*-of-3.safetensors"))
    shutil.copy(second, tmp_path / "kept")
    second.unlink()
    with pytest.raises(RunError, match=r"1-of-3.safetensors is missing, which is a part of"):
        train(job, None)
    second.write_bytes(b"not a shard")
    with pytest.raises(RunError, match="cannot be read"):
        train(job, None)
    foreign = first.read_bytes().replace(b"token", b"other")
    first.write_bytes(foreign)
    with pytest.raises(RunError, match=r"0-of-3.safetensors is not of the same checkpoint"):
        train(job, None)
