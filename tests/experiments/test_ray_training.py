"""What the process that starts the workers decides: room, addresses, and what an error means."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pathdex.config import RunOptions
from pathdex.errors import ConfigError
from pathdex.experiments.ray_training import check_cluster, failure, training_cluster


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


class ActorDiedError(Exception):
    """Ray's error has this name."""


class WorkerGroupStartupTimeoutError(Exception):
    """Ray's error has this name."""


def failed(text: str = "", **attributes: object) -> Exception:
    """An error of Ray Train."""
    error = RuntimeError(text)
    error.__dict__.update(attributes)
    return error


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (failed("ModuleNotFoundError: No module named 'pathdex'"), "a node of the Ray cluster has no pathdex; install"),
        (failed(controller_failure=WorkerGroupStartupTimeoutError()), "had no room for 2 workers for some minutes, so"),
        (
            failed(worker_failures={0: ValueError("connection closed"), 1: ActorDiedError()}),
            r"worker 1 was lost, as one was 3 times before .*often: out of memory\), so all were stopped;",
        ),
        (failed(worker_failures={1: ValueError("Traceback\nKeyError: 3")}), r"worker 1 failed \(KeyError: 3\), so all"),
        (failed("no GCS"), r"Ray Train failed \(no GCS\), so all were stopped; continue with --resume"),
    ],
    ids=["no pathdex", "no room", "lost", "a bug", "anything else"],
)
def test_what_the_last_error_of_ray_means(error: Exception, meaning: str) -> None:
    with pytest.raises(Exception, match=meaning):
        raise failure(error, 2)
