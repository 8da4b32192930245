"""The workers of one training, and everything that travels between them.

All methods but the properties are collective: every worker calls them in the same order. Arrays are numpy arrays and
tensors of the CPU; with the backend nccl they pass through the GPU.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from pathdex.errors import LostWorkerError, PathdexError, RunError, WorkerError
from pathdex.training.distributed.bounded_calls import BoundedCalls

Result = TypeVar("Result")
BEATS = 10
"""While one worker works for all, it shows so many signs of life per time-out."""


@dataclass
class Traffic:
    """What one worker has sent to others, and its time in collectives."""

    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0


class Group:
    """This worker's place among all, over an initialised `torch.distributed` process group."""

    def __init__(self, timeout: float) -> None:
        self.rank, self.size, self.timeout = dist.get_rank(), dist.get_world_size(), timeout
        self.device = torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
        self.traffic = Traffic()
        self._rounds, self._calls = 0, BoundedCalls()

    @property
    def is_first(self) -> bool:
        """Whether this is the worker that reads, writes and prints for all."""
        return self.rank == 0

    def exchange(
        self, rows: Tensor, counts: Sequence[int], expected: Sequence[int] | None = None
    ) -> tuple[Tensor, list[int]]:
        """Send the next `counts[r]` rows to worker r; returns what was received, by sender, and how much from each.

        `expected` are the received numbers if they are known; otherwise they travel first.
        """
        sent = list(counts)
        if expected is None:
            sizes = torch.tensor(sent, device=self.device)
            arriving = torch.empty_like(sizes)
            with self._measured(8 * (self.size - 1)):
                dist.all_to_all_single(arriving, sizes)
            received: list[int] = arriving.tolist()
        else:
            received = list(expected)
        given = rows.contiguous().to(self.device)
        result = torch.empty((sum(received), *rows.shape[1:]), dtype=rows.dtype, device=self.device)
        each = given.element_size() * (given[:1].numel() if len(given) else 0)
        with self._measured(each * (len(given) - sent[self.rank])):
            dist.all_to_all_single(result, given, received, sent)
        return result.to(rows.device), received

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum of the workers' tensors, in place where that is possible."""
        return self._reduce(tensor, dist.ReduceOp.SUM)

    def max(self, tensor: Tensor) -> Tensor:
        """The largest of the workers' tensors, element by element."""
        return self._reduce(tensor, dist.ReduceOp.MAX)

    def total(self, array: NDArray[Any] | float) -> NDArray[Any]:
        """The sum of the workers' arrays."""
        return self.sum(torch.from_numpy(np.array(array))).numpy()

    def largest(self, number: int) -> int:
        """The largest of the workers' numbers."""
        return int(self.max(torch.tensor([number]))[0])

    def stack(self, array: NDArray[Any]) -> NDArray[Any]:
        """The arrays of all workers, which have one shape: (worker, ...)."""
        given = torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
        found = torch.empty((self.size * len(given), *given.shape[1:]), dtype=given.dtype, device=self.device)
        with self._measured(array.nbytes * (self.size - 1)):
            _all_gather(found, given)
        return found.cpu().numpy().reshape(self.size, *array.shape)

    def gather(self, array: NDArray[Any]) -> list[NDArray[Any]]:
        """The arrays of all workers, which may differ in their first dimension."""
        kind = array.dtype
        flat = array.astype(np.uint8) if kind == np.bool_ else array
        lengths = self.stack(np.array([len(flat)]))[:, 0]
        if not lengths.any():
            return [array for _ in lengths]
        padded = np.zeros((int(lengths.max()), *flat.shape[1:]), flat.dtype)
        padded[: len(flat)] = flat
        return [
            rows[:length].astype(kind, copy=False) for rows, length in zip(self.stack(padded), lengths, strict=True)
        ]

    def gather_first(self, array: NDArray[Any]) -> list[NDArray[Any]] | None:
        """The arrays of all workers on the first one, None on others; they may differ in their first dimension."""
        counts = [0] * self.size
        counts[0] = len(array)
        received, lengths = self.exchange(torch.from_numpy(np.ascontiguousarray(array)), counts)
        if not self.is_first:
            return None
        return np.split(received.numpy(), np.cumsum(lengths)[:-1])

    def agree(self, vote: bool) -> bool:
        """The first worker's vote."""
        return bool(self.sum(torch.tensor([float(vote and self.is_first)]))[0])

    def describe(self, own: Any) -> list[Any]:
        """The small JSON values of all workers."""
        found = self.gather(np.frombuffer(json.dumps(own).encode(), np.uint8).copy())
        return [json.loads(one.tobytes()) for one in found]

    def together(self, work: Callable[[], Result], problem: str) -> Result:
        """Do something on every worker. If it fails on one, all stop: the others with `problem`."""
        error = None
        try:
            result = work()
        except Exception as failure:
            error = failure
        failed = np.flatnonzero(np.concatenate(self.gather(np.array([error is not None]))))
        if error is not None:
            raise error
        if len(failed):
            raise WorkerError(f"worker {failed[0]} {problem}; see what it printed")
        return result

    def first_only(self, work: Callable[[], Result]) -> Result | None:
        """Let the first worker do something that may take longer than the time-out; others wait for it and get None.

        An error there becomes one here, so that all workers stop.
        """
        self._rounds += 1
        store, key = dist.distributed_c10d._get_default_store(), f"pathdex/{self._rounds}"
        if self.is_first:
            try:
                with _heartbeat(self._calls, lambda: store.add(f"{key}/beats", 1), self.timeout / BEATS):
                    result = work()
            except BaseException as error:
                # Only now: calls of the store wait until the signs of life have ended.
                outcome = f"failed: {error}"
                with suppress(PathdexError):
                    self._guarded(lambda: store.set(f"{key}/done", outcome))
                raise
            self._guarded(lambda: store.set(f"{key}/done", "done"))
            self.largest(0)  # The store may be a part of this process, so it stays until all have read it.
            return result
        self._wait(store, key)
        self.largest(0)
        return None

    def _wait(self, store: Any, key: str) -> None:
        beats, seen = -1, time.monotonic()
        while not self._guarded(lambda: store.check([f"{key}/done"])):
            now = self._guarded(lambda: store.add(f"{key}/beats", 0))
            if now != beats:
                beats, seen = now, time.monotonic()
            if time.monotonic() - seen > self.timeout:
                raise LostWorkerError(f"worker 0 has shown no sign of life for {self.timeout:g} s; {REMEDY}")
            time.sleep(min(0.2, self.timeout / BEATS))
        outcome = self._guarded(lambda: store.get(f"{key}/done").decode())
        if outcome != "done":
            raise WorkerError(f"worker 0 {outcome}")

    def _reduce(self, tensor: Tensor, operation: Any) -> Tensor:
        given = tensor.to(self.device)
        # A ring sends every element twice to one neighbour, less the share that stays.
        with self._measured(2 * given.element_size() * given.numel() * (self.size - 1) // self.size):
            dist.all_reduce(given, operation)
        return given.to(tensor.device)

    @contextmanager
    def _measured(self, sent: int) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        except RuntimeError as error:
            raise self._lost(error) from error
        self.traffic.calls += 1
        self.traffic.bytes += sent
        self.traffic.seconds += time.monotonic() - started

    def _guarded(self, work: Callable[[], Result]) -> Result:
        """Ask the store, which has no time-out of its own: behind a cut link it would answer never."""
        try:
            return self._calls.call(work, self.timeout)
        except RuntimeError as error:
            raise self._lost(error) from error

    def _lost(self, error: RuntimeError) -> PathdexError:
        if is_out_of_memory(error):
            return self.out_of_memory()
        reason = str(error).splitlines()[0].rpartition("] ")[2].split(". ")[0][:200]
        text = f"worker {self.rank} of {self.size} lost contact with another worker ({reason}); {REMEDY}"
        return LostWorkerError(text)

    def out_of_memory(self) -> RunError:
        """What to say of this worker, once it could not allocate."""
        return RunError(
            f"worker {self.rank} of {self.size} ran out of memory, so all were stopped; continue with --resume and "
            "more workers or machines"
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory could not be allocated; torch says so in words."""
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in NO_MEMORY)


NO_MEMORY = ("allocate memory", "out of memory", "bad_alloc", "bad alloc", "can't start new thread")
# The old name warns in new versions of torch, and old versions lack the new one.
_all_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
REMEDY = "see what that worker printed, then continue with --resume"


@contextmanager
def _heartbeat(calls: BoundedCalls, beat: Callable[[], object], seconds: float) -> Iterator[None]:
    done = threading.Event()

    def work() -> None:
        with suppress(RuntimeError):  # The store is gone, so everyone else is.
            beat()
            while not done.wait(seconds):
                beat()

    calls.begin(work)
    try:
        yield
    finally:
        done.set()


def backend_for(device: str) -> str:
    """The backend of `torch.distributed` for a device."""
    return "nccl" if torch.device(device).type == "cuda" else "gloo"


def _meet(backend: str, timeout: timedelta) -> None:
    """Find the others in the store of torchrun.

    On one machine torchrun may keep its store when it restarts workers, so each start has keys of its own. Between
    several machines, where it counts the restarts separately, it replaces the store.
    """
    if os.environ.get("GROUP_WORLD_SIZE") != "1":
        dist.init_process_group(backend, timeout=timeout)
        return
    store, rank, size = next(rendezvous("env://", timeout=timeout))
    own = dist.distributed_c10d.PrefixStore(f"start-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    dist.init_process_group(backend, store=own, rank=rank, world_size=size, timeout=timeout)


def connect(device: str, timeout: float) -> Group:
    """Join the other workers: those that the environment of torchrun names, or those that Ray Train has connected."""
    if dist.is_initialized():
        return Group(timeout)
    backend = backend_for(device)
    try:
        _meet(backend, timedelta(seconds=timeout))
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise WorkerError(
            f"the workers cannot find each other ({reason}); check that all were started with the same number of "
            "workers and the same address, and that its port is free"
        ) from error
    return Group(timeout)
