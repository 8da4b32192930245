"""What the process that starts the workers decides: room, addresses, and what an error means."""

from __future__ import annotations

import importlib.util
import re
from types import SimpleNamespace
from typing import Any

import pytest

from pathdex.config import RunOptions
from pathdex.errors import AccuracyWarning, ConfigError, LostWorkerError, StorageError, WorkerError
from pathdex.experiments.ray_training import MessageReader, check_cluster, failure, training_cluster
from pathdex.experiments.ray_worker import Message
from pathdex.training.callbacks import Callback, StepProgress

LOST = LostWorkerError("worker 0 of 2 lost contact with another worker")
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra ray")


def cluster(*nodes: dict[str, float], dead: dict[str, float] | None = None) -> SimpleNamespace:
    """A `ray` with nodes of these resources."""
    found = [{"Alive": True, "Resources": one} for one in nodes]
    return SimpleNamespace(nodes=lambda: [*found, {"Alive": False, "Resources": dead or {}}])


@pytest.mark.parametrize(
    ("ray", "options", "room"),
    [
        (cluster({"CPU": 2.0}, {"CPU": 1.0}, {}), RunOptions(), 3),
        (cluster({"CPU": 2.0}, dead={"CPU": 8.0}), RunOptions(), 2),
        (cluster({"CPU": 7.0}, {"CPU": 3.0}), RunOptions(threads=4), 1),
        (cluster({"CPU": 8.0, "GPU": 2.0}, {"CPU": 8.0}, {"CPU": 1.0, "GPU": 4.0}), RunOptions(device="cuda"), 3),
    ],
    ids=["nodes", "a dead node", "whole workers only", "GPUs"],
)
def test_more_workers_than_the_nodes_have_room_for(ray: SimpleNamespace, options: RunOptions, room: int) -> None:
    check_cluster(ray, room, options)
    rule = rf"workers={room + 1}: the Ray cluster has room for {room}, each with .*; use fewer, or add nodes"
    with pytest.raises(ConfigError, match=rule):
        check_cluster(ray, room + 1, options)


def test_a_worker_is_described_by_what_it_reserves() -> None:
    with pytest.raises(ConfigError, match="each with 4 CPUs and a GPU;"):
        check_cluster(cluster(), 1, RunOptions(threads=4, device="cuda:0"))


def test_training_is_not_driven_from_outside_the_cluster() -> None:
    with pytest.raises(
        ConfigError, match=r"must be local, auto or HOST:PORT.*; run the command on one of its machines"
    ):
        training_cluster("ray://127.0.0.1:10001").__enter__()


class Told(Callback):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def on_step_end(self, progress: StepProgress) -> None:
        self.calls.append(progress)

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        self.calls.append(record)


def test_the_progress_of_the_first_worker_arrives_and_a_restart_is_noted() -> None:
    told, notes = Told(), list[str]()
    reader = MessageReader(told, notes.append)
    step = StepProgress("encoder", 1, 2, 3, 4, {"loss": 1.0})
    for message in (Message("start", 0), Message("step", 0, step), Message("epoch", 0, {"number": 1})):
        reader.read(message)
    assert told.calls == [step, {"number": 1}]
    assert not notes
    reader.read(Message("start", 0))
    assert notes == ["a worker was lost; all continue from the last checkpoint (restart 1)"]
    reader.raise_error()


def test_a_warning_of_the_first_worker_is_one_here() -> None:
    with pytest.warns(AccuracyWarning, match="below popularity"):
        MessageReader(Told(), print).read(Message("warning", 0, AccuracyWarning("below popularity")))


def test_of_several_errors_the_cause_is_raised() -> None:
    reader = MessageReader(Told(), print)
    reader.read(Message("error", 2, (LOST, "")))
    reader.raise_error()  # Ray Train starts again.
    reader.read(Message("error", 1, (WorkerError("worker 0 failed: no space"), "")))
    reader.read(Message("error", 0, (StorageError("no space"), "in the worker")))
    with pytest.raises(StorageError, match=r"^no space$") as caught:
        reader.raise_error()
    assert str(caught.value.__cause__) == "in the worker"


def failed(text: str = "", **attributes: object) -> Exception:
    """An error of Ray Train."""
    error = RuntimeError(text)
    error.__dict__.update(attributes)
    return error


@pytest.mark.parametrize(
    ("error", "kind", "meaning"),
    [
        (failed("No module named 'pathdex'"), WorkerError, "a node of the Ray cluster has no pathdex; install"),
        (
            failed(worker_failures={0: LOST, 1: KeyError(3)}),
            WorkerError,
            r"worker 1 failed \(3\), so all were stopped; continue with --resume",
        ),
        (failed(worker_failures={1: MemoryError()}), WorkerError, r"worker 1 failed \(MemoryError\), so all"),
        (
            failed(worker_failures={0: LOST, 1: LOST}),
            LostWorkerError,
            "^worker 0 of 2 lost contact with another worker$",
        ),
        (failed("no GCS"), WorkerError, r"Ray Train failed \(no GCS\), so all were stopped; continue with --resume"),
    ],
    ids=["no pathdex", "a bug", "no text", "lost contact only", "anything else"],
)
def test_what_the_last_error_of_ray_means(error: Exception, kind: type[WorkerError], meaning: str) -> None:
    found = failure(error, 2)
    assert type(found) is kind
    assert re.search(meaning, str(found))


@needs_ray
def test_a_worker_that_is_gone_is_named_and_not_the_one_that_noticed() -> None:
    from ray.train.v2._internal.exceptions import WorkerHealthCheckFailedError
    from ray.train.v2.api.exceptions import WorkerGroupError

    gone = WorkerHealthCheckFailedError("poll failed", RuntimeError("the actor died"))
    text = str(failure(WorkerGroupError("", {0: LOST, 1: gone}), 2))
    assert text.startswith("worker 1 was lost, as one was 3 times before (its process or node ended; often: out of")
    assert text.endswith("so all were stopped; continue with --resume")


@needs_ray
def test_a_cluster_that_became_too_small() -> None:
    from ray.train.v2._internal.exceptions import WorkerGroupStartupTimeoutError
    from ray.train.v2.api.exceptions import ControllerError

    text = str(failure(ControllerError(WorkerGroupStartupTimeoutError(2)), 2))
    assert text.startswith("the Ray cluster had no room for 2 workers for some minutes, so all were stopped;")
