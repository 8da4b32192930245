"""A worker that runs out of memory: one error, no process left, nothing half-written, and the run resumes."""

from __future__ import annotations

import os
import re
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.memory_limit import memory_group

import pathdex
from pathdex.storage.staging import is_staging
from tests.cli.test_train_workers import SECONDS, job, run, source, wait_for, workers_of

__all__ = ["job", "source"]
pytestmark = pytest.mark.slow
ROOM = 1 << 20


def assert_stopped_and_resumes(job: subprocess.Popen[str], folder: Path, message: str) -> None:
    errors = job.communicate(timeout=SECONDS)[1]
    assert job.returncode == 1
    lines = [line for line in errors.splitlines() if "Error" in line]
    assert len(lines) == 1, errors
    assert re.match(rf"Error: {message}", lines[0]), lines
    assert "Traceback" not in errors
    wait_for(lambda: not workers_of(folder))
    assert not (folder / "bundle").exists()
    again = run("pathdex", "train", "--out", str(folder), "--resume", "--workers", "2")
    assert again.returncode == 0, again.stderr
    # The next checkpoint removes what a killed worker left.
    assert not [path for path in folder.iterdir() if is_staging(path.name)]
    assert pathdex.load(folder).recommend([4, 8], n=3)


def test_the_kernel_kills_a_worker(job: subprocess.Popen[str], tmp_path: Path) -> None:
    with memory_group(ROOM) as group:
        if group is None:
            pytest.skip("needs a control group for memory")
        # What the worker has so far counts elsewhere, so it may take so much more.
        (group / "cgroup.procs").write_text(str(workers_of(tmp_path / "run")[1]))
        message = r"worker 1 was ended by SIGKILL \(often: out of memory\), so all were stopped; continue with --resume"
        assert_stopped_and_resumes(job, tmp_path / "run", message)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_worker_cannot_allocate(job: subprocess.Popen[str], tmp_path: Path, rank: int) -> None:
    worker = workers_of(tmp_path / "run")[rank]
    status = (Path("/proc") / str(worker) / "status").read_text()
    size = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData")) * 1024
    resource.prlimit(worker, resource.RLIMIT_DATA, (size, size))
    # Python and torch raise errors, and compilers abort the process.
    message = (
        rf"worker {rank} (of 2 ran out of memory|was ended by SIGABRT \(often: out of memory\)), so all were stopped"
    )
    assert_stopped_and_resumes(job, tmp_path / "run", message)


GREEDY = """
import resource
import sys

import numpy as np
import torch

from pathdex.errors import PathdexError
from pathdex.training.distributed.launch import joined, worker_place

try:
    with joined(worker_place(), "cpu", 60.0) as group:
        if group.rank == 1:
            resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
            torch.ones(1 << 30) if sys.argv[1] == "torch" else np.ones(1 << 30)
        group.largest(0)
except PathdexError as error:
    print(error, flush=True)
    sys.exit(1)
"""


@pytest.mark.parametrize("package", ["torch", "numpy"])
def test_what_python_and_torch_raise_is_one_error(package: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", GREEDY, package],
            env={**os.environ, **place, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    found = [one.communicate(timeout=SECONDS)[0] for one in jobs]
    assert "worker 0 of 2 lost contact with another worker" in found[0]
    expected = (
        "worker 1 of 2 ran out of memory, so all were stopped; continue with --resume and more workers or machines"
    )
    assert found[1].splitlines() == [expected]
