"""What a worker of Ray Train does: check its node, train its share, and tell the process that started all."""

from __future__ import annotations

import os
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pathdex
from pathdex.config import RunOptions
from pathdex.errors import PathdexError, RunError, WorkerError
from pathdex.experiments.runs import Run
from pathdex.training.callbacks import Callback, StepProgress
from pathdex.training.distributed.launch import worker_place

STEP_SECONDS = 0.5
"""Of the steps in between, nothing is told."""


class Message(NamedTuple):
    """What a worker tells; an error comes with its traceback."""

    kind: Literal["start", "step", "epoch", "warning", "error"]
    rank: int
    content: Any = None


@dataclass(frozen=True)
class WorkerJob:
    """What all workers are told."""

    folder: Path
    request: dict[str, Any]
    """The content of the run folder's request."""
    version: str
    timeout: float
    trackers: tuple[str, ...]
    messages: Any
    """A `ray.util.queue.Queue`."""
    environment: Mapping[str, str]
    """Variables for the trackers."""


def train_share(config: dict[str, Any]) -> None:
    """The training function of Ray Train, which has connected the workers."""
    job: WorkerJob = config["job"]
    place = worker_place()
    rank = 0 if place is None else place.rank
    try:
        check_node(job)
        if rank == 0:
            job.messages.put(Message("start", rank))
        with _warnings_told(job.messages, rank):
            _train(job)
    except PathdexError as error:
        job.messages.put(Message("error", rank, (error, traceback.format_exc())))
        raise


def check_node(job: WorkerJob) -> None:
    """`WorkerError` if this node has another version, or does not see the run folder."""
    name = os.uname().nodename
    if pathdex.__version__ != job.version:
        raise WorkerError(
            f"the node {name} has pathdex {pathdex.__version__}, not {job.version}; install the same on all nodes"
        )
    try:
        seen = Run.open(job.folder).request
    except RunError:
        seen = None
    if seen != job.request:
        raise WorkerError(
            f"the node {name} does not see {job.folder}; put the run folder on storage that all nodes share, at the "
            "same path"
        )


def _train(job: WorkerJob) -> None:
    from pathdex.training.distributed.group import connect

    os.environ.update(job.environment)
    run, place = Run.open(job.folder), worker_place()
    options = RunOptions(**run.request["options"])
    following = [_Telling(job.messages)]
    if place is None:
        run.train(callbacks=following, trackers=job.trackers, owned=True)
        return
    group = connect(options.device, job.timeout)
    run.train_share(group, options.threads or 1, callbacks=following, trackers=job.trackers, owned=True)


class _Telling(Callback):
    """Tells what the first worker does."""

    def __init__(self, messages: Any) -> None:
        self.messages, self.last = messages, 0.0

    def on_step_end(self, progress: StepProgress) -> None:
        if time.monotonic() - self.last >= STEP_SECONDS:
            self.last = time.monotonic()
            self.messages.put(Message("step", 0, progress._replace(losses=dict(progress.losses))))

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        self.messages.put(Message("epoch", 0, record))


@contextmanager
def _warnings_told(messages: Any, rank: int) -> Iterator[None]:
    """Tell the warnings of the first worker; those of others say the same."""

    def tell(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if rank == 0 and issubclass(category, UserWarning):
            messages.put(Message("warning", rank, message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = tell
        yield
