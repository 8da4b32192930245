"""`pathdex train --ray`: the result of other workers, also after a lost node; one error; no process left."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pathdex
from pathdex.storage.run_folder import CHECKPOINT, LOG
from tests.cli.conftest import Pathdex

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="needs the extra ray")
FLAGS = ["--embedding-dim", "8", "--num-nodes", "6", "--depth", "2", "--epochs", "60", "--rounds", "1"]
FLAGS += ["--batch-size", "128", "--structure-batch-size", "128"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
SECONDS = 300.0
STORE = {"object_store_memory": 80 * 2**20}


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "pathdex", "train", *words]


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**ENVIRONMENT, **environment}
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=SECONDS, env=given, check=False)


def start(*words: str, **environment: str) -> subprocess.Popen[str]:
    given = {**ENVIRONMENT, **environment}
    return subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=given)


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def epochs(folder: Path) -> list[dict[str, Any]]:
    """The records of a log, without their times."""
    try:
        lines = (folder / LOG).read_text().splitlines()
    except FileNotFoundError:
        return []
    return [{name: value for name, value in json.loads(line).items() if "seconds" not in name} for line in lines]


def contents(bundle: Path) -> dict[str, bytes]:
    return {str(file.relative_to(bundle)): file.read_bytes() for file in bundle.rglob("*") if file.is_file()}


def parents() -> dict[int, int]:
    """The parent of each process that runs."""
    found = {}
    for entry in filter(lambda one: one.name.isdecimal(), Path("/proc").iterdir()):
        with suppress(OSError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(entry.name)] = int(parent)
    return found


def descendants(ancestor: int) -> set[int]:
    """The processes that a process has started, and those that they have."""
    known, found = parents(), {ancestor}
    while more := {one for one, parent in known.items() if parent in found} - found:
        found |= more
    return found - {ancestor}


def workers_of(ancestor: int) -> list[int]:
    """The workers of Ray Train among the descendants of a process."""
    found = []
    for one in descendants(ancestor):
        with suppress(OSError):
            if b"RayTrainWorker" in Path(f"/proc/{one}/cmdline").read_bytes():
                found.append(one)
    return sorted(found)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Users of four kinds."""
    random = np.random.default_rng(0)
    lines = [
        f"{user},{item},{time}"
        for user in range(300)
        for time, item in enumerate(random.integers(0, 25, 12) * 4 + user % 4)
    ]
    file = tmp_path_factory.mktemp("events") / "events.csv"
    file.write_text("\n".join(["user,item,time", *lines]))
    return file


@pytest.fixture(scope="module")
def undisturbed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two workers without Ray."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    done = run(str(source), "--out", str(folder), "--workers", "2", *FLAGS)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def make_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Any]]:
    """Makes a cluster whose head runs no workers, and two nodes with so many CPUs."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    made = []

    def make(cpus: int) -> Any:
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **STORE})
        made.append(cluster)
        for _ in range(2):
            cluster.add_node(num_cpus=cpus, **STORE)
        cluster.wait_for_nodes()
        return cluster

    yield make
    for cluster in made:
        cluster.shutdown()


def lose_a_node(cluster: Any) -> None:
    cluster.remove_node(next(one for one in cluster.list_all_nodes() if not one.is_head()), allow_graceful=False)


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::Warning")  # Those of Ray.
def test_a_training_that_loses_a_node_ends_as_if_nothing_had_happened(
    make_cluster: Callable[[int], Any], source: Path, undisturbed: Path, tmp_path: Path
) -> None:
    cluster, folder = make_cluster(2), tmp_path / "run"
    job = start(str(source), "--out", str(folder), "--workers", "2", "--ray", cluster.address, "--json", "-", *FLAGS)
    wait_for(lambda: len(epochs(folder)) > 3 or job.poll() is not None)
    before = len(epochs(folder))
    lose_a_node(cluster)
    output, errors = job.communicate(timeout=SECONDS)
    assert job.returncode == 0, errors
    assert before < 60
    assert "a worker was lost; all continue from the last checkpoint (restart 1)" in errors
    assert json.loads(output)["run"] == str(folder)
    assert epochs(folder) == epochs(undisturbed)
    assert contents(folder / "bundle") == contents(undisturbed / "bundle")


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::Warning")
def test_without_room_for_all_workers_the_job_ends_and_fewer_continue(
    make_cluster: Callable[[int], Any], source: Path, tmp_path: Path
) -> None:
    cluster, folder = make_cluster(1), tmp_path / "run"
    words = ["--out", str(folder), "--ray", cluster.address]
    job = start(str(source), *words, "--workers", "2", *FLAGS, RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S="2")
    wait_for(lambda: len(epochs(folder)) > 3 or job.poll() is not None)
    lose_a_node(cluster)
    output, errors = job.communicate(timeout=SECONDS)
    assert job.returncode == 1
    assert not output
    assert errors.count("Error:") == 1
    assert "Error: the Ray cluster had no room for 2 workers for some minutes, so all were stopped; continue" in errors
    wait_for(lambda: not workers_of(os.getpid()))  # The cluster stays, and its nodes are ours.
    before = len(epochs(folder))
    refused = run(*words, "--resume", "--workers", "2")
    assert "workers=2: the Ray cluster has room for 1, each with 1 CPU; use fewer, or add nodes" in refused.stderr
    again = run(*words, "--resume")
    assert again.returncode == 0, again.stderr
    assert len(epochs(folder)) > before
    assert pathdex.load(folder).recommend([4, 8], n=3)


@needs_ray
@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_ctrl_c_leaves_no_process(
    source: Path, undisturbed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    words = ["--out", str(folder), "--workers", "2"]
    job = start(str(source), *words, "--ray", "local", *FLAGS)
    wait_for(lambda: len(epochs(folder)) > 3 or job.poll() is not None)
    first = workers_of(job.pid)
    assert len(first) == 2
    os.kill(first[1], signal.SIGKILL)
    before = len(epochs(folder))
    wait_for(lambda: len(epochs(folder)) > before + 1 or job.poll() is not None)
    started = descendants(job.pid)
    job.send_signal(signal.SIGINT)
    errors = job.communicate(timeout=SECONDS)[1]
    assert job.returncode == 130, errors
    assert "(restart 1)" in errors
    assert f"Interrupted. Resume with: pathdex train --out {folder} --resume" in errors
    assert "Traceback" not in errors
    wait_for(lambda: not started & set(parents()))
    done = run(*words, "--resume")
    assert done.returncode == 0, done.stderr
    assert contents(folder / "bundle") == contents(undisturbed / "bundle")


@needs_ray
@pytest.mark.slow
def test_nothing_outlives_a_killed_command(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    job = start(str(source), "--out", str(folder), "--workers", "2", "--ray", "local", *FLAGS, "--epochs", "9999")
    wait_for(lambda: len(epochs(folder)) > 1 or job.poll() is not None)
    started = descendants(job.pid)
    assert len(workers_of(job.pid)) == 2
    job.kill()
    job.communicate(timeout=SECONDS)
    wait_for(lambda: not started & set(parents()))


@needs_ray
@pytest.mark.slow
def test_a_worker_that_is_lost_again_and_again_ends_the_job(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    job = start(str(source), "--out", str(folder), "--workers", "2", "--ray", "local", *FLAGS, "--epochs", "9999")
    started: set[int] = set()
    for _ in range(4):
        before = len(epochs(folder))
        wait_for(lambda before=before: len(epochs(folder)) > before + 1 or job.poll() is not None)
        started |= descendants(job.pid)
        os.kill(workers_of(job.pid)[1], signal.SIGKILL)
    errors = job.communicate(timeout=SECONDS)[1]
    assert job.returncode == 1
    assert [f"(restart {one})" in errors for one in (1, 2, 3, 4)] == [True, True, True, False]
    assert errors.count("Error:") == 1
    assert re.search(r"Error: worker \d was lost, as one was 3 times before .* continue with --resume\n$", errors)
    wait_for(lambda: not started & set(parents()))
    assert epochs(folder)


@needs_ray
@pytest.mark.slow
def test_an_error_of_a_worker_reads_as_without_ray(source: Path, undisturbed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    begun = start(str(source), "--out", str(folder), "--workers", "2", *FLAGS)
    wait_for(lambda: len(epochs(folder)) > 3 or begun.poll() is not None)
    begun.send_signal(signal.SIGINT)
    begun.communicate(timeout=SECONDS)
    (folder / CHECKPOINT).write_bytes(b"no checkpoint")
    words = ["--out", str(folder), "--resume", "--workers", "2"]
    alone, on_ray = run(*words), run(*words, "--ray", "local")
    assert (alone.returncode, on_ray.returncode) == (1, 1)
    assert [line for line in on_ray.stderr.splitlines() if "rror" in line] == [
        line for line in alone.stderr.splitlines() if "rror" in line
    ]


@needs_ray
@pytest.mark.slow
def test_more_workers_than_cpus_are_refused_before_the_data_is_read(source: Path, tmp_path: Path) -> None:
    refused = run(str(source), "--out", str(tmp_path / "run"), "--workers", "9999", "--ray", "local")
    assert refused.returncode == 1
    assert "Error: workers=9999: the Ray cluster has room for" in refused.stderr
    assert not list(tmp_path.iterdir())


@needs_ray
@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("nonsense", "ray='nonsense': must be local, auto, HOST:PORT"),
        ("127.0.0.1:9", "ray='127.0.0.1:9': does not answer"),
        ("ray://127.0.0.1:9", "must be local, auto or HOST:PORT, since training is driven by a machine of the cluster"),
    ],
)
def test_an_address_that_is_no_cluster(pathdex: Pathdex, source: Path, tmp_path: Path, address: str, rule: str) -> None:
    outcome = pathdex("train", source, "--out", tmp_path / "run", "--workers", 2, "--ray", address, fails=1)
    assert rule in outcome.stderr
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_without_a_cluster_is_said_before_connecting(
    pathdex: Pathdex, source: Path, tmp_path: Path
) -> None:
    words = ["train", source, "--workers", 2, "--ray", "127.0.0.1:9", "--out"]
    assert "depth=0" in pathdex(*words, tmp_path / "run", "--depth", 0, fails=1).stderr
    assert "exists and is not a run folder" in pathdex(*words, tmp_path, fails=1).stderr


def test_ray_is_not_for_workers_of_torchrun(
    pathdex: Pathdex, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    outcome = pathdex("train", source, "--out", tmp_path / "run", "--ray", "local", fails=1)
    assert "ray='local': starts workers itself; leave it out under torchrun" in outcome.stderr
