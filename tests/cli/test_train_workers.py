"""`pathdex train --workers`: one result, one error, no process left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pathdex

SMALL = ["--embedding-dim", "8", "--num-nodes", "6", "--depth", "2", "--epochs", "3", "--rounds", "1"]
SMALL += ["--batch-size", "128", "--structure-batch-size", "128"]  # Large batches have gradients in bfloat16.
LONG = ["--embedding-dim", "8", "--num-nodes", "6", "--depth", "2", "--epochs", "60", "--rounds", "1"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
SECONDS = 240.0


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Users of four kinds."""
    random = np.random.default_rng(0)
    lines = [
        f"{user},{item},{time}"
        for user in range(300)
        for time, item in enumerate(random.integers(0, 25, 12) * 4 + user % 4)
    ]
    file = tmp_path / "events.csv"
    file.write_text("\n".join(["user,item,time", *lines]))
    return file


@pytest.fixture
def job(source: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A training on two workers that has written a checkpoint."""
    command = [sys.executable, "-m", "pathdex", "train", str(source), "--out", str(tmp_path / "run"), "--workers", "2"]
    process = subprocess.Popen([*command, *LONG], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    wait_for(lambda: (tmp_path / "run" / "log.jsonl").exists() or process.poll() is not None)
    yield process
    process.kill()
    process.communicate()


def wait_for(condition: object) -> None:
    end = time.monotonic() + SECONDS
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.1)


def workers_of(folder: Path) -> list[int]:
    """The processes that train in a run folder, without the launcher."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdecimal() else []
        except OSError:
            continue
        if str(folder).encode() in words and b"--resume" in words:
            found.append(int(entry.name))
    return sorted(found)


def children_of(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return sorted(int(child) for task in tasks for child in task.read_text().split())


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=ENVIRONMENT, check=False)


@pytest.mark.slow
def test_workers_and_torchrun_give_the_model_of_one_process(source: Path, tmp_path: Path) -> None:
    train = ["pathdex", "train", str(source), *SMALL, "--out"]
    assert run(*train, str(tmp_path / "one")).returncode == 0
    two = run(*train, str(tmp_path / "two"), "--workers", "2")
    assert two.returncode == 0, two.stderr
    assert two.stderr.count("encoder 1") == 1
    torchrun = run("torch.distributed.run", "--nproc-per-node", "2", "-m", *train, str(tmp_path / "three"))
    assert torchrun.returncode == 0, torchrun.stderr
    models = [pathdex.load(tmp_path / name) for name in ("one", "two", "three")]
    for model in models[1:]:
        np.testing.assert_array_equal(model.paths, models[0].paths)
        assert [one.id for one in model.recommend([4, 8], n=5)] == [one.id for one in models[0].recommend([4, 8], n=5)]


@pytest.mark.slow
def test_workers_that_are_given_something_else_stop_before_the_data_is_read(source: Path, tmp_path: Path) -> None:
    """As on two machines where torchrun was started with different options."""
    folder = tmp_path / "run"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    jobs = []
    for rank, other in enumerate(([], ["--seed", "3", "--epochs", "4"])):
        place = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        command = [sys.executable, "-m", "pathdex", "train", str(source), "--out", str(folder), *SMALL, *other]
        jobs.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**ENVIRONMENT, **place}))
    for errors in [job.communicate(timeout=SECONDS)[1] for job in jobs]:
        assert "worker 1 has another epochs (4, worker 0 3); worker 1 has another seed (3, worker 0 None)" in errors
        assert errors.count("Error:") == 1
    assert [job.returncode for job in jobs] == [1, 1]
    assert not folder.exists()


@pytest.mark.slow
def test_a_killed_worker_ends_all_and_another_number_of_workers_resumes(
    job: subprocess.Popen[str], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    os.kill(workers_of(folder)[1], signal.SIGKILL)
    errors = job.communicate(timeout=SECONDS)[1]
    assert job.returncode == 1
    assert errors.count("Error:") == 1
    assert "was ended by SIGKILL (often: out of memory), so all were stopped; continue with --resume" in errors
    assert not workers_of(folder)
    before = len((folder / "log.jsonl").read_text().splitlines())
    again = run("pathdex", "train", "--out", str(folder), "--resume", "--workers", "3")
    assert again.returncode == 0, again.stderr
    assert len((folder / "log.jsonl").read_text().splitlines()) > before
    assert pathdex.load(folder).recommend([4, 8], n=3)


@pytest.mark.slow
def test_torchrun_restarts_after_a_killed_worker(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train = ["-m", "pathdex", "train", str(source), "--out", str(folder), *LONG]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1", *train]
    job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    wait_for(lambda: (folder / "log.jsonl").exists() or job.poll() is not None)
    os.kill(children_of(job.pid)[1], signal.SIGKILL)
    errors = job.communicate(timeout=SECONDS)[1]
    assert job.returncode == 0, errors
    assert "Error:" not in errors
    assert errors.count("encoder 1  ") == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_end_all_workers(job: subprocess.Popen[str], tmp_path: Path, number: signal.Signals) -> None:
    job.send_signal(number)
    errors = job.communicate(timeout=SECONDS)[1]
    assert job.returncode == 128 + number
    assert f"Interrupted. Resume with: pathdex train --out {tmp_path / 'run'} --resume --workers 2\n" in errors
    assert not workers_of(tmp_path / "run")


@pytest.mark.slow
def test_workers_end_with_a_killed_launcher(job: subprocess.Popen[str], tmp_path: Path) -> None:
    assert len(workers_of(tmp_path / "run")) == 2
    job.kill()
    wait_for(lambda: not workers_of(tmp_path / "run"))
