"""Trains a run folder with the workers of Ray Train (extra `ray`).

The process that calls `train_on_ray` owns the folder, shows progress and raises errors. If a worker or its node is
lost, Ray Train starts all workers again, and they continue from the last checkpoint.
"""

from __future__ import annotations

import importlib
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any, NamedTuple

import pathdex
from pathdex.config import RunOptions
from pathdex.errors import ConfigError, LostWorkerError, PathdexError, Problem, WorkerError
from pathdex.experiments.ray_worker import Message, WorkerJob, train_share
from pathdex.experiments.runs import Run
from pathdex.ray_cluster import ray_cluster
from pathdex.storage.folder_lock import folder_lock
from pathdex.training.callbacks import Callback, following
from pathdex.training.distributed.launch import TIMEOUT

FAILURES = 3
"""So often a lost worker or node is replaced."""
_LOCAL_STORE = 100 * 2**20
"""Bytes of shared memory of a cluster on this machine: rows travel by torch.distributed, so Ray stores little."""
_GATHERING = 2.0
"""Seconds to wait for the errors of other workers after the first one."""
_SETTINGS = {
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_TRAIN_METRICS_ENABLED": "0",
    "RAY_TRAIN_V2_ENABLED": "1",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "60",
}
_TRACKER_SETTINGS = ("MLFLOW_", "WANDB_")


@contextmanager
def training_cluster(address: str) -> Iterator[Any]:
    """The `ray` package, connected to the cluster at an address, or to one on this machine with `local`."""
    if address.startswith("ray://"):
        rule = "must be local, auto or HOST:PORT, since training is driven by a machine of the cluster"
        raise ConfigError([Problem(rule, "ray", address, "run the command on one of its machines")])
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    with ray_cluster(address, "ray.train.torch", object_store_memory=_LOCAL_STORE) as ray:
        yield ray


class Share(NamedTuple):
    """What one worker reserves on its node."""

    cpus: int
    gpus: int

    @classmethod
    def of(cls, options: RunOptions) -> Share:
        """One CPU per thread, by default one, and one GPU with `device="cuda"`."""
        return cls(options.threads or 1, int(options.device.startswith("cuda")))

    def fit_on(self, resources: dict[str, float]) -> int:
        """How many workers a node has room for."""
        room = int(resources.get("CPU", 0) // self.cpus)
        return min(room, int(resources.get("GPU", 0))) if self.gpus else room

    def __str__(self) -> str:
        return f"{self.cpus} CPU{'s' * (self.cpus > 1)}{' and a GPU' * self.gpus}"


def check_cluster(ray: Any, workers: int, options: RunOptions) -> None:
    """`ConfigError` if the nodes of a cluster have no room for so many workers, whoever uses them now."""
    share = Share.of(options)
    places = sum(share.fit_on(node["Resources"]) for node in ray.nodes() if node["Alive"])
    if places < workers:
        rule = f"the Ray cluster has room for {places}, each with {share}"
        raise ConfigError([Problem(rule, "workers", workers, "use fewer, or add nodes to the cluster")])


def train_on_ray(
    ray: Any,
    run: Run,
    workers: int,
    *,
    timeout: float = TIMEOUT,
    callbacks: Sequence[Callback] | None = None,
    trackers: Sequence[str] = (),
    notify: Callable[[str], None] = lambda line: None,
) -> None:
    """Train a run to the end, from its checkpoint if there is one, on the cluster that `ray` is connected to.

    The run folder must be on storage that all nodes share. `callbacks` are called in this process; `notify` gets a line
    whenever the workers start again. An error of a worker is raised here; only `ray.shutdown()` then ends the workers.
    """
    with (
        folder_lock(run.path, "pathdex train --ray"),
        tempfile.TemporaryDirectory(prefix="pathdex-ray-") as storage,
        following(callbacks) as shown,
    ):
        messages = _queue(ray)
        folder = run.path.absolute()
        request = Run.open(folder).request
        environment = _tracker_settings(trackers)
        job = WorkerJob(folder, request, pathdex.__version__, timeout, tuple(trackers), messages, environment)
        fit = _Fit(_trainer(job, workers, RunOptions(**request["options"]), storage))
        fit.start()
        _follow(fit, messages, MessageReader(shown, notify))
        if fit.error is not None:
            raise failure(fit.error, workers) from fit.error


class _Fit(Thread):
    """`TorchTrainer.fit` in a thread, so that this one shows progress and stays open to Ctrl-C."""

    def __init__(self, trainer: Any) -> None:
        super().__init__(name="pathdex-ray-train", daemon=True)
        self.trainer = trainer
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.trainer.fit()
        except Exception as error:
            self.error = error


class MessageReader:
    """Passes on what the first worker does, and keeps the errors of all."""

    def __init__(self, callback: Callback, notify: Callable[[str], None]) -> None:
        self.callback, self.notify = callback, notify
        self.starts = 0
        self.errors: dict[int, tuple[PathdexError, str]] = {}

    def read(self, message: Message) -> None:
        if message.kind == "start":
            self.starts += 1
            if self.starts > 1:
                self.notify(f"a worker was lost; all continue from the last checkpoint (restart {self.starts - 1})")
        elif message.kind == "step":
            self.callback.on_step_end(message.content)
        elif message.kind == "epoch":
            self.callback.on_epoch_end(message.content)
        elif message.kind == "warning":
            warnings.warn(message.content, stacklevel=4)
        elif not isinstance(message.content[0], LostWorkerError):  # Ray Train starts again after those.
            self.errors.setdefault(message.rank, message.content)

    def raise_error(self) -> None:
        """The error of the worker that failed first: others may only report that it did."""
        if self.errors:
            error, where = min(self.errors.items(), key=lambda one: (isinstance(one[1][0], WorkerError), one[0]))[1]
            raise error from RuntimeError(where)


def _follow(fit: _Fit, messages: Any, reader: MessageReader) -> None:
    """Read messages until the training ends or has an error that another start would meet again."""
    end = float("inf")
    while fit.is_alive() and time.monotonic() < end:
        for message in _received(messages):
            reader.read(message)
        if reader.errors:
            end = min(end, time.monotonic() + _GATHERING)
    for message in _received(messages, wait=0.0):
        reader.read(message)
    reader.raise_error()


def _received(messages: Any, wait: float = 1.0) -> Iterator[Message]:
    """All messages that are there, and the first one that comes within `wait` seconds."""
    empty: Any = importlib.import_module("ray.util.queue").Empty
    try:
        yield messages.get(timeout=wait) if wait else messages.get_nowait()
        while True:
            yield messages.get_nowait()
    except empty:
        return


def _queue(ray: Any) -> Any:
    """A queue on the node of this process, which stays as long as the training."""
    queues: Any = importlib.import_module("ray.util.queue")
    strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
    here = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return queues.Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here})


def _trainer(job: WorkerJob, workers: int, options: RunOptions, storage: str) -> Any:
    train: Any = importlib.import_module("ray.train")
    torch_train: Any = importlib.import_module("ray.train.torch")
    share = Share.of(options)
    return torch_train.TorchTrainer(
        train_share,
        train_loop_config={"job": job},
        torch_config=torch_train.TorchConfig(backend="nccl" if share.gpus else "gloo", timeout_s=job.timeout),
        scaling_config=train.ScalingConfig(
            num_workers=workers,
            use_gpu=bool(share.gpus),
            resources_per_worker={"CPU": share.cpus, **({"GPU": 1} if share.gpus else {})},
            placement_strategy="SPREAD",  # Workers are added for their memory.
        ),
        run_config=train.RunConfig(
            name="train",
            storage_path=storage,
            failure_config=train.FailureConfig(max_failures=FAILURES, controller_failure_limit=FAILURES),
        ),
    )


def _tracker_settings(trackers: Sequence[str]) -> dict[str, str]:
    """The environment variables that configure the trackers."""
    return {name: value for name, value in os.environ.items() if trackers and name.startswith(_TRACKER_SETTINGS)}


def failure(error: Exception, workers: int) -> WorkerError:
    """What Ray Train's last error means to the user, after all restarts."""
    remedy = "so all were stopped; continue with --resume"
    if "No module named 'pathdex" in str(error):
        return WorkerError("a node of the Ray cluster has no pathdex; install the same version on all nodes")
    cause = getattr(error, "controller_failure", error)
    if type(cause).__name__ == "WorkerGroupStartupTimeoutError":
        return WorkerError(
            f"the Ray cluster had no room for {workers} workers for some minutes, {remedy}, with fewer workers or more "
            "nodes"
        )
    failures = sorted(getattr(error, "worker_failures", {}).items())
    # Those that only lost contact say nothing about why.
    rank, reason = next((one for one in failures if not isinstance(one[1], LostWorkerError)), (None, cause))
    if rank is None:
        if failures:
            return LostWorkerError(str(failures[0][1]))
        return WorkerError(f"Ray Train failed ({_last_line(reason)}), {remedy}")
    if type(reason).__name__.startswith("WorkerHealthCheck"):
        return WorkerError(
            f"worker {rank} was lost, as one was {FAILURES} times before (its process or node ended; often: out of "
            f"memory), {remedy}"
        )
    return WorkerError(f"worker {rank} failed ({_last_line(reason)}), {remedy}")


def _last_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1][:200] if lines else type(error).__name__
