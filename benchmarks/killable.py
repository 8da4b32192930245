"""`pathdex` commands in forked processes: they start without importing everything again, and can die at any moment."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

PRELOADED = ("pathdex.cli.app", "pathdex.recommenders.stream_trainer", "pathdex.server.serving", "redis", __name__)
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree")


@dataclass(frozen=True)
class Death:
    """When a process kills itself: so many seconds after a change of a file in `folder`, the `change`-th one."""

    folder: Path
    change: int
    seconds: float = 0.0


class Command:
    """`pathdex ARGUMENTS` in a process of its own. Its output is appended to `log`."""

    def __init__(self, arguments: list[str], log: Path, death: Death | None = None) -> None:
        self.log, self.death = log, death
        self.process: BaseProcess = _context().Process(target=_run, args=(arguments, log, death))  # type: ignore[attr-defined]
        self.process.start()

    @property
    def is_running(self) -> bool:
        return self.process.is_alive()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def stop(self, seconds: float = 120.0) -> int | None:
        """SIGTERM, once the command handles it: any process dies of one that comes earlier. Returns the exit code."""
        wait_until(lambda: not self.is_running or self._handles(signal.SIGTERM), seconds, "handling of SIGTERM")
        if self.is_running:
            os.kill(self.pid, signal.SIGTERM)
        return self.wait(seconds)

    def _handles(self, number: signal.Signals) -> bool:
        with suppress(FileNotFoundError, ProcessLookupError):
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
            caught = next(line.split()[1] for line in lines if line.startswith("SigCgt:"))
            return bool(int(caught, 16) >> (number - 1) & 1)
        return False

    def wait(self, seconds: float = 120.0) -> int | None:
        """The exit code. A process that does not end in time is killed."""
        self.process.join(seconds)
        if self.is_running:
            self.kill()
        return self.process.exitcode


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context


def _run(arguments: list[str], log: Path, death: Death | None) -> None:
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(handle, stream)
    if death is not None:
        _arm(death)
    from pathdex.cli.app import main

    sys.argv = ["pathdex", *arguments]
    main()


def _arm(death: Death) -> None:
    """Die at a change of a file. Python reports each before it happens."""
    folder, left = os.fspath(death.folder), death.change

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def look(event: str, given: tuple[object, ...]) -> None:
        nonlocal left
        if event in _CHANGES and any(isinstance(one, str | os.PathLike) and folder in os.fspath(one) for one in given):
            left -= 1
            if left == 0 and death.seconds:
                threading.Timer(death.seconds, die).start()
            elif left == 0:
                die()

    sys.addaudithook(look)


def random_death(draws: random.Random, folder: Path) -> Death:
    """Right before a change of a file, or a few milliseconds after one: while SQLite commits, or a file is synced."""
    return Death(folder, draws.randint(1, 120), draws.choice([0.0, 0.0, draws.uniform(0.0, 0.03)]))


def wait_until(condition: object, seconds: float, what: str) -> None:
    """Wait for a condition; `SystemExit` that says what did not happen."""
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > until:
            raise SystemExit(f"{what} did not happen within {seconds:g} s")
        time.sleep(0.05)
