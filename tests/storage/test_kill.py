"""A process that is killed while it saves leaves the old content or the new content, whatever the moment.

`PATHDEX_KILLS` sets the number of kills per test; by default 30.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from pathdex.storage import atomic
from pathdex.storage.atomic import atomic_folder
from pathdex.storage.bundle import Bundle, read_bundle, write_bundle
from pathdex.storage.checkpoint import load_checkpoint, save_checkpoint

KILLS = int(os.environ.get("PATHDEX_KILLS", "30"))
READS = 30
"""Saves during which a bundle is read."""

Save: TypeAlias = Callable[[Path, int], None]


def save_bundle(path: Path, number: int) -> None:
    """Every number gives files of the same sizes, so that a mixture of two saves has no wrong size."""
    arrays = {name: np.full(50, number) for name in ("first", "second")}
    weights = {"third": np.full(50, number, np.float32)}
    write_bundle(path, Bundle("some-model", {"number": f"{number:09d}"}, arrays, weights), overwrite=True)


def bundle_number(path: Path, *, verify: bool = True) -> int:
    """The number that all parts of the bundle agree on."""
    bundle = read_bundle(path, verify=verify)
    found = {int(value) for part in (bundle.arrays, bundle.weights) for array in part.values() for value in array}
    (number,) = found | {int(bundle.settings["number"])}
    return number


def save_one_checkpoint(path: Path, number: int) -> None:
    save_checkpoint(path, {"number": number}, {"array": np.full(500, number)})


def checkpoint_number(path: Path) -> int:
    state, arrays = load_checkpoint(path)
    (number,) = {*arrays["array"].tolist(), state["number"]}
    assert isinstance(number, int)
    return number


def save_forever(save: Save, path: Path, first: int, saved: Connection) -> None:
    for number in itertools.count(first):
        saved.send(number)
        save(path, number)


def save_until(save: Save, path: Path, number: int, step: int, exchange: bool) -> None:
    """Save, and die before the step-th file operation that Python audits: open, mkdir, rename, remove ..."""
    if not exchange:
        atomic.exchange = lambda *_: False
    steps = itertools.count()

    def die(event: str, _: object) -> None:
        if event.startswith(("open", "os.", "shutil.", "ctypes.", "tempfile.")) and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(die)
    save(path, number)


def start(target: Callable[..., None], *args: object) -> BaseProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=target, args=args)
    process.start()
    return process


@contextmanager
def saving(save: Save, path: Path, first: int) -> Iterator[Connection]:
    """A process that saves number after number, and sends each before it does. Killed at the end of the block."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = start(save_forever, save, path, first, sender)
    sender.close()
    try:
        yield receiver
    finally:
        process.kill()
        process.join()
        process.close()
        receiver.close()


def leftovers(path: Path) -> list[Path]:
    """Staging beside the target, except empty ones, which take no space and are kept for a minute."""
    return [
        file
        for file in path.parent.iterdir()
        if file != path and (any(file.iterdir()) if file.is_dir() else file.stat().st_size)
    ]


both = pytest.mark.parametrize(
    ("save", "number_of"),
    [(save_bundle, bundle_number), (save_one_checkpoint, checkpoint_number)],
    ids=["bundle", "checkpoint"],
)


@both
def test_a_kill_at_a_random_moment(tmp_path: Path, save: Save, number_of: Callable[[Path], int]) -> None:
    path, generator = tmp_path / "target", random.Random(0)
    began = time.perf_counter()
    save(path, 0)
    duration, last = time.perf_counter() - began, 0
    for _ in range(KILLS):
        with saving(save, path, last + 1) as numbers:
            for _ in range(generator.choice([1, 1, 2])):
                sent = numbers.recv()
            time.sleep(generator.uniform(0, duration))
        found = number_of(path)
        assert found >= sent - 1
        assert len(leftovers(path)) <= 1
        last = found
    assert last > 0
    save(path, last + 1)
    assert number_of(path) == last + 1
    assert not leftovers(path)


@both
def test_a_kill_before_every_file_operation(tmp_path: Path, save: Save, number_of: Callable[[Path], int]) -> None:
    outcomes = set()
    for step in itertools.count():
        path = tmp_path / str(step) / "target"
        save(path, 0)
        process = start(save_until, save, path, 1, step, True)
        process.join()
        outcomes.add((process.exitcode, number_of(path)))
        if process.exitcode == 0:
            break
        save(path, 2)
        assert number_of(path) == 2
        assert not leftovers(path)
    assert outcomes == {(-signal.SIGKILL, 0), (-signal.SIGKILL, 1), (0, 1)}


@pytest.mark.parametrize("by", ["write", "open"])
def test_without_an_exchange_the_next_write_or_open_restores_the_old_bundle(tmp_path: Path, by: str) -> None:
    missing = 0
    for step in itertools.count():
        path = tmp_path / str(step) / "bundle"
        save_bundle(path, 0)
        process = start(save_until, save_bundle, path, 1, step, False)
        process.join()
        missing += not path.exists()
        if by == "write":
            with suppress(KeyError), atomic_folder(path, overwrite=True):
                raise KeyError
            assert path.exists()
        assert bundle_number(path) in (0, 1)
        if process.exitcode == 0:
            break
    assert missing == 1


@pytest.mark.parametrize("verify", [True, False])
def test_a_reader_never_sees_a_mixture_of_two_saves(tmp_path: Path, verify: bool) -> None:
    path = tmp_path / "bundle"
    save_bundle(path, 0)
    seen = []
    with saving(save_bundle, path, 1) as numbers:
        while numbers.recv() <= READS:
            while not numbers.poll():
                seen.append(bundle_number(path, verify=verify))
    assert len(set(seen)) > 1
    assert seen == sorted(seen)


def test_two_processes_that_save_at_once_leave_a_complete_bundle(tmp_path: Path) -> None:
    path = tmp_path / "bundle"
    save_bundle(path, 0)
    with saving(save_bundle, path, 1) as first, saving(save_bundle, path, 1_000_000) as second:
        for _ in range(READS // 3):
            first.recv()
            second.recv()
            assert bundle_number(path) >= 0
    assert bundle_number(path) > 0
