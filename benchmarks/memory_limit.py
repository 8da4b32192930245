"""Runs a command with limited memory, in a control group of its own where this user may create one."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class LimitedRun:
    """How a command ended."""

    kind: str
    """`cgroup` or `RLIMIT_DATA`."""
    returncode: int
    seconds: float
    peak: int | None
    """Most bytes that the group held at once, with cached pages of files; None without a group."""
    resident: int
    """Most bytes of the process in memory, with mapped pages of files."""
    output: str


def run_limited(command: Sequence[str], limit: int, folder: Path) -> LimitedRun:
    """Run a command with at most `limit` bytes of memory.

    A control group counts all memory, also cached pages of files, which the system can drop. Elsewhere `RLIMIT_DATA`
    limits what a process allocates, whether it is used or not, but not files that it maps.
    """
    with memory_group(limit) as group, (folder / "output.txt").open("w+") as output:

        def enter() -> None:
            if group is None:
                resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
            else:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        started = time.monotonic()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, preexec_fn=enter)
        try:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            process.kill()
            process.wait()
            raise
        seconds = time.monotonic() - started
        output.seek(0)
        peak = None if group is None else _peak(group)
        kind = "RLIMIT_DATA" if group is None else "cgroup"
        return LimitedRun(kind, process.returncode, seconds, peak, usage.ru_maxrss * 1024, output.read())


@contextmanager
def memory_group(limit: int) -> Iterator[Path | None]:
    """A control group with so much memory; None where this user may not create one."""
    for base, file in ((V1, "memory.limit_in_bytes"), (V2, "memory.max")):
        folder = base / f"pathdex-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / file).write_text(str(limit))
            with suppress(OSError):  # No swap, where the kernel counts it.
                (folder / ("memory.memsw.limit_in_bytes" if base == V1 else "memory.swap.max")).write_text(
                    str(limit) if base == V1 else "0"
                )
            entered = (folder / "cgroup.procs").exists()
        except OSError:
            entered = False
        try:
            if entered:
                yield folder
                return
        finally:
            for _ in range(50):  # The kernel frees the group of a process a moment after its end.
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)
    yield None


def _peak(group: Path) -> int | None:
    for name in ("memory.max_usage_in_bytes", "memory.peak"):
        with suppress(OSError):
            return int((group / name).read_text())
    return None
