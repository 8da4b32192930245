"""Workers that run once for all tests of this folder: two, then three that continue the checkpoint of the two."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathdex.storage.folder_lock import fcntl
from pathdex.training.trainer import Trainer
from tests.training.distributed.program import train

SIZES = (2, 3)
SAMPLED = {"softmax": "sampled", "num_negatives": 10}
JOBS: list[dict[str, Any]] = [
    {"parameters": SAMPLED},
    {
        "parameters": {
            **SAMPLED,
            "dropout": 0.0,
            "start": "random",
            "scoring": "streaming",
            "next_items": 3,
            "structure": "recurrent",
        }
    },
    {"parameters": {"next_items": 3, "encoder": "pooled", "dropout": 0.0}},
]
STOPS = {2: 5, 3: 9}
"""Steps after which a training with so many workers is interrupted; the first is in the encoder phase."""


@dataclass
class Workers:
    """The results of all launches."""

    folder: Path

    def trained(self, size: int, job: int) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
        """Weights and paths by name, and the records."""
        name = self.folder / f"workers{size}-{job}"
        with np.load(name.with_suffix(".npz")) as arrays:
            return dict(arrays), json.loads(name.with_suffix(".json").read_text())

    def problems(self, check: str) -> list[str]:
        """Tracebacks of a check on any worker."""
        files = [self.folder / f"workers{size}-checks.json" for size in SIZES]
        every = [one for file in files for one in json.loads(file.read_text())]
        return [one[check] for one in every if check in one]

    @property
    def checkpoint(self) -> Path:
        """That of a training which two, then three workers have begun."""
        return self.folder / "begun.safetensors"


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Workers:
    """Launched once, whichever process of pytest is first."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "workers"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            begun = {"parameters": SAMPLED, "checkpoint": str(folder / "begun.safetensors"), "checkpoint_always": True}
            for size in SIZES:
                last = {**begun, "stop_after": STOPS[size], "resume": size > SIZES[0]}
                run_workers(size, folder / f"workers{size}", [*JOBS, last])
            (folder / "done").touch()
    return Workers(folder)


@pytest.fixture(scope="session")
def alone() -> Callable[[int], Trainer]:
    """The training of a job in one process."""
    return lambda job: train(JOBS[job], None)


def run_workers(size: int, out: Path, jobs: list[dict[str, Any]]) -> None:
    """Run `program` in `size` processes to their end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.training.distributed.program", str(out), json.dumps(jobs)]
    started = [
        subprocess.Popen(command, env={**os.environ, **place, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(size)
    ]
    try:
        errors = [one.communicate(timeout=300)[1] for one in started]
    finally:
        for one in started:
            one.kill()
            one.wait()
    assert [one.returncode for one in started] == [0] * size, "\n".join(errors)
