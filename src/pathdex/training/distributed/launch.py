"""Start workers with torchrun's launcher, and join them."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from pathdex.errors import ConfigError, PathdexError, Problem, WorkerError

if TYPE_CHECKING:
    from pathdex.training.distributed.group import Group

TIMEOUT = 300.0
"""Seconds that a worker waits for others in a collective."""
LATE = 5.0
"""A worker that lost another one reports it so many seconds later: the launcher ends it before, and only the worker
that failed reports an error. An error of all workers is reported by the first."""
_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)


class WorkerPlace(NamedTuple):
    """One worker of a job, as torchrun describes it in the environment."""

    rank: int
    size: int
    local_size: int
    restarts: int

    @property
    def threads(self) -> int:
        """The share of the machine's cores."""
        return max(1, (os.cpu_count() or 1) // self.local_size)


def worker_place(environment: Mapping[str, str] | None = None) -> WorkerPlace | None:
    """The place of this process; None if it is not one of several workers."""
    given = os.environ if environment is None else environment
    if "RANK" not in given or "WORLD_SIZE" not in given:
        return None
    names = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "TORCHELASTIC_RESTART_COUNT": "0"}
    try:
        place = WorkerPlace(*(int(given.get(name, default)) for name, default in names.items()))
    except ValueError as error:
        raise WorkerError(f"the environment of torchrun is damaged ({error}); start again with torchrun") from error
    if not 0 <= place.rank < place.size:
        raise WorkerError(
            f"RANK={place.rank} is not below WORLD_SIZE={place.size}; give every worker its own rank from 0 on"
        )
    return None if place.size == 1 else place


def check_workers(workers: int | None, place: WorkerPlace | None) -> int:
    """The number of workers to train on; `ConfigError` if torchrun has started another number than asked for."""
    if workers is not None and workers < 1:
        raise ConfigError([Problem("must be at least 1", "workers", workers)])
    if place is None:
        return workers or 1
    if workers is not None and workers != place.size:
        rule = f"must be the number that torchrun has started, {place.size}"
        raise ConfigError([Problem(rule, "workers", workers, "leave it out under torchrun")])
    return place.size


@contextmanager
def joined(place: WorkerPlace | None, device: str, timeout: float = TIMEOUT) -> Iterator[Group | None]:
    """The group of all workers while the block runs; None for a single process."""
    if place is None:
        yield None
        return
    import torch.distributed as dist

    from pathdex.training.distributed.group import connect, is_out_of_memory

    die_with_parent()
    group = connect(device, timeout)
    try:
        yield group
    except WorkerError:
        time.sleep(LATE if group.is_first else 2 * LATE)
        raise
    except PathdexError:
        time.sleep(0 if group.is_first else LATE)
        raise
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise group.out_of_memory() from error
    finally:
        with suppress(RuntimeError):
            dist.destroy_process_group()


def die_with_parent() -> None:
    """End this process when its launcher ends, however that ends. On Linux."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def launch(workers: int, arguments: Sequence[str]) -> None:
    """Run `python -m pathdex ARGUMENTS` as several workers on this machine, and wait for all of them.

    If one fails, the others are ended. It has printed its error, unless the system killed it: `WorkerError` says that.
    Ctrl-C and SIGTERM end all, and are then handled as without workers.
    """
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=workers,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=0,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "pathdex", *arguments)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode > 0:
            raise WorkersFailed(failure.exitcode) from error
        name = signal.Signals(-failure.exitcode).name
        reason = " (often: out of memory)" if name in ("SIGKILL", "SIGABRT") else ""
        raise WorkerError(
            f"worker {rank} was ended by {name}{reason}, so all were stopped; continue with --resume"
        ) from error
    except SignalException as error:
        handler = handlers.get(error.sigval)
        if callable(handler):
            handler(error.sigval, None)
        raise KeyboardInterrupt from error


class WorkersFailed(SystemExit):
    """A worker failed and has printed why; `code` is its exit code."""
