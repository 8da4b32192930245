"""Workers in two network namespaces, with latency and loss between them, and with a link that is cut.

Needs root and `ip`: `make netns` runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.cli.test_train_workers import SECONDS, run, source, wait_for
from tests.namespaces import Link, can_isolate, namespace, remove_dead_namespaces

__all__ = ["source"]
pytestmark = pytest.mark.slow
NUMBER = 90
"""Of the link, apart from those of other tests."""
DEVICES = (f"r{NUMBER}", "s0")
SMALL = ["--embedding-dim", "8", "--num-nodes", "6", "--depth", "2", "--epochs", "2", "--rounds", "1"]
SMALL += ["--structure-epochs", "1", "--final-epochs", "1", "--next-items", "1", "--neighbours", "5", "--threads", "1"]


class Machines:
    """Two namespaces with a link, as two machines with a shared folder."""

    def __init__(self, spaces: list[str], link: Link) -> None:
        self.spaces, self.link = spaces, link

    def train(self, *arguments: str) -> list[subprocess.Popen[str]]:
        """torchrun on both."""
        started = []
        for rank, (space, device) in enumerate(zip(self.spaces, DEVICES, strict=True)):
            torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
            torchrun += ["--node-rank", str(rank), "--master-addr", f"10.77.{NUMBER}.1", "--master-port", "29500"]
            command = ["ip", "netns", "exec", space, *torchrun, "-m", "pathdex", "train", *arguments]
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": device}
            started.append(
                subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            )
        return started


@pytest.fixture
def machines() -> Iterator[Machines]:
    if not can_isolate():
        pytest.skip("needs root, ip and /dev/net/tun")
    remove_dead_namespaces()
    with ExitStack() as stack:
        spaces = [stack.enter_context(namespace(f"pathdex-w{rank}-{os.getpid()}")) for rank in range(2)]
        link = Link(NUMBER, *spaces)
        stack.callback(link.close)
        yield Machines(spaces, link)


@pytest.fixture
def expected(source: Path, tmp_path: Path) -> Path:
    """The bundle of two workers on one machine."""
    folder = tmp_path / "expected"
    done = run("pathdex", "train", str(source), *SMALL, "--out", str(folder), "--workers", "2")
    assert done.returncode == 0, done.stderr
    return folder / "bundle"


def assert_same(found: Path, expected: Path) -> None:
    assert {file.name for file in found.iterdir()} == {file.name for file in expected.iterdir()}
    for file in expected.iterdir():
        assert (found / file.name).read_bytes() == file.read_bytes(), file.name


def ended(jobs: list[subprocess.Popen[str]]) -> list[str]:
    """What both printed, once they have ended."""
    try:
        return [job.communicate(timeout=SECONDS)[1] for job in jobs]
    finally:
        for job in jobs:
            job.kill()


def test_latency_and_loss_change_no_result(machines: Machines, source: Path, expected: Path, tmp_path: Path) -> None:
    machines.link.shape(delay=50.0, loss=0.01)
    folder = tmp_path / "run"
    jobs = machines.train(str(source), *SMALL, "--out", str(folder))
    errors = ended(jobs)
    assert [job.returncode for job in jobs] == [0, 0], errors
    assert_same(folder / "bundle", expected)


def test_a_cut_link_ends_both_workers_and_a_resumed_training_has_the_same_result(
    machines: Machines,
    source: Path,
    expected: Path,
    tmp_path: Path,
) -> None:
    machines.link.shape(delay=50.0)
    folder = tmp_path / "run"
    jobs = machines.train(str(source), *SMALL, "--out", str(folder), "--worker-timeout", "10")
    wait_for(lambda: (folder / "log.jsonl").exists() or any(job.poll() is not None for job in jobs))
    machines.link.shape(loss=1.0)
    for rank, errors in enumerate(ended(jobs)):
        own = [line for line in errors.splitlines() if line.startswith("Error:")]
        assert len(own) == 1, errors
        assert own[0].startswith(f"Error: worker {rank} of 2 lost contact with another worker (")
    assert [job.returncode for job in jobs] == [1, 1]
    assert not left_of(folder)
    assert not (folder / "bundle").exists()
    machines.link.shape()
    jobs = machines.train("--out", str(folder), "--resume")
    errors = ended(jobs)
    assert [job.returncode for job in jobs] == [0, 0], errors
    assert_same(folder / "bundle", expected)


def left_of(folder: Path) -> list[int]:
    """The processes that have a run folder among their arguments."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(folder).encode() in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
    return found


ALONE = """
import time
from pathdex.errors import WorkerError
from pathdex.training.distributed.launch import joined, worker_place

try:
    with joined(worker_place(), "cpu", 5.0) as group:
        print("joined", flush=True)
        group.first_only(lambda: time.sleep(20))
except WorkerError as error:
    print(error, flush=True)
"""


def test_a_cut_link_is_noticed_while_the_first_worker_works_alone(machines: Machines) -> None:
    """The others ask a store for signs of life, whose calls have no time-out of their own."""
    jobs = []
    for rank, (space, device) in enumerate(zip(machines.spaces, DEVICES, strict=True)):
        place = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": f"10.77.{NUMBER}.1", "MASTER_PORT": "29501"}
        command = ["ip", "netns", "exec", space, sys.executable, "-c", ALONE]
        environment = {**os.environ, **place, "GLOO_SOCKET_IFNAME": device}
        jobs.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    for job in jobs:
        assert job.stdout is not None
        assert job.stdout.readline() == "joined\n"
    machines.link.shape(loss=1.0)
    found = [job.communicate(timeout=SECONDS)[0] for job in jobs]
    assert "worker 0 of 2 lost contact with another worker" in found[0]
    assert "worker 1 of 2 lost contact with another worker (no answer within 5 s)" in found[1]
