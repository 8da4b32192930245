"""A server under mixed load while models are swapped, damaged and malicious ones among them, and workers are killed.

Allowed to fail are only requests on connections of a killed worker. Before a worker is killed it is stopped, and its
connections are read from /proc, so the set of these requests is exact.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.server_process import children, put_in_place

from pathdex.errors import PathdexError
from pathdex.recommenders.registry import load
from pathdex.server.stores import open_store
from pathdex.storage.bundle import bundle_version
from tests.bundle_edits import sign_files
from tests.random_model import random_model
from tests.torture.bundle_fuzzer import in_memory
from tests.torture.mutations import Draft, mutate
from tests.torture.server_load import ANSWER_SECONDS, Client, Ledger, stay_idle

WORKERS = 3
CLIENTS = {
    "query": 6,
    "new connection": 4,
    "batch": 2,
    "events": 3,
    "invalid": 1,
    "slow writer": 8,
    "slow reader": 4,
    "silent reader": 2,
}
START_SECONDS = 180.0
KEPT_COPIES = 6


def torture(
    minutes: float, seed: int, *, idle: int = 500, swap_seconds: float = 5.0, kill_seconds: float = 20.0
) -> dict[str, Any]:
    """Torture a server for so long; returns the report."""
    with tempfile.TemporaryDirectory() as scratch:
        return asyncio.run(
            Torture(Path(scratch), minutes, seed, idle=idle, swap_seconds=swap_seconds, kill_seconds=kill_seconds).run()
        )


class Torture:
    """One run."""

    def __init__(self, folder: Path, minutes: float, seed: int, **plan: Any) -> None:
        self.folder, self.seconds, self.seed, self.plan = folder, 60 * minutes, seed, plan
        self.random = random.Random(seed)
        self.good = [random_model(60 + 20 * number, number).save(folder / f"good-{number}") for number in range(3)]
        self.bad = make_bad(self.good[0], folder / "bad", seed)
        queries = make_queries(seed)
        expected = {
            bundle_version(one)[:12]: [load(one).recommend(**query) for query in queries]  # type: ignore[misc]
            for one in self.good
        }
        self.ledger = Ledger(expected, queries)
        self.link = folder / "model"
        self.log = folder / "server.log"
        self.swaps = {"good": 0, "bad": 0}
        self.kills = 0
        self.memory: list[float] = []
        self._place_good(self.good[0])

    async def run(self) -> dict[str, Any]:
        raise_file_limit()
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # A slow writer may write to a killed worker.
        process, port = await self._start()
        tasks = [
            asyncio.create_task(Client(self.ledger, port, self.seed + place, kind).run())
            for kind, number in CLIENTS.items()
            for place in range(number)
        ]
        tasks += [
            asyncio.create_task(stay_idle(self.ledger, port, after_request=place % 2 == 0))
            for place in range(self.plan["idle"])
        ]
        oldest = min(children(process.pid))
        tasks += [asyncio.create_task(work) for work in (self._swap(), self._kill(process.pid, oldest))]
        taken: dict[str, float] = {}
        try:
            await self._watch(oldest, tasks)
            taken = await asyncio.to_thread(counters, port)
        except OSError as error:
            self.ledger.fail("no metrics", repr(error))
        finally:
            await end(tasks)
            process.terminate()
            try:
                code = await asyncio.to_thread(process.wait, 90)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
        if code != 0:
            self.ledger.fail("exit code", str(code))
        await self._check_store()
        return self._report(taken)

    async def _start(self) -> tuple[subprocess.Popen[bytes], int]:
        limits = {"timeout": 60, "read-timeout": 5, "keep-alive": 20, "max-history": 1_000_000, "watch": 0.5}
        flags = [f"--{name}={value}" for name, value in limits.items()]
        command = [sys.executable, "-m", "pathdex", "serve", str(self.link), "--port=0", f"--workers={WORKERS}", *flags]
        environment = {**os.environ, "PATHDEX_CACHE": str(self.folder / "cache")}
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [*command, f"--user-store={self.folder / 'users.sqlite'}"], stdout=log, stderr=log, env=environment
            )
        until = time.monotonic() + START_SECONDS
        while (found := re.search(rb" at http://127\.0\.0\.1:(\d+)", self.log.read_bytes())) is None:
            if process.poll() is not None or time.monotonic() > until:
                process.kill()
                raise SystemExit(f"the server did not start:\n{self.log.read_text()}")
            await asyncio.sleep(0.1)
        return process, int(found[1])

    async def _watch(self, oldest: int, tasks: list[asyncio.Task[None]]) -> None:
        until = time.monotonic() + self.seconds
        while time.monotonic() < until:
            await asyncio.sleep(1)
            self.memory.append(own_mb(oldest))
            for task in tasks:
                if task.done() and not task.cancelled() and task.exception() is not None:
                    raise task.exception()  # type: ignore[misc]

    async def _swap(self) -> None:
        copies: list[Path] = []
        while True:
            await asyncio.sleep(self.plan["swap_seconds"])
            if self.random.random() < 0.5:
                self._place_good(self.random.choice(self.good))
                continue
            # A copy, since the verdict about a folder that was tried is remembered.
            copy = self.folder / f"copy-{self.swaps['bad']}"
            shutil.copytree(self.random.choice(self.bad), copy, symlinks=True)
            put_in_place(self.link, copy)
            self.swaps["bad"] += 1
            copies.append(copy)
            if len(copies) > KEPT_COPIES:
                shutil.rmtree(copies.pop(0))

    def _place_good(self, bundle: Path) -> None:
        put_in_place(self.link, bundle)
        self.swaps["good"] += 1
        now, version = time.monotonic(), bundle_version(bundle)[:12]
        for other in self.ledger.placed:
            if other != version:
                self.ledger.replaced.setdefault(other, now)
        self.ledger.replaced.pop(version, None)
        self.ledger.placed.setdefault(version, now)

    async def _kill(self, supervisor: int, oldest: int) -> None:
        """Kill workers at random, except the oldest one, whose memory is watched."""
        while True:
            await asyncio.sleep(self.random.uniform(0.5, 1.5) * self.plan["kill_seconds"])
            victims = [pid for pid in children(supervisor) if pid != oldest and is_worker(pid)]
            if not victims:
                continue
            victim = self.random.choice(victims)
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                os.kill(victim, signal.SIGSTOP)
                while not is_stopped(victim):
                    await asyncio.sleep(0.01)
                self.ledger.mark_killed(client_ports(victim))
                os.kill(victim, signal.SIGKILL)
                self.kills += 1

    async def _check_store(self) -> None:
        """Every acknowledged event is stored, in order, and nothing else but events whose response was lost."""
        store = open_store(str(self.folder / "users.sqlite"), 1_000_000)
        users = sorted(self.ledger.stored)
        for user, found in zip(users, await store.histories(users), strict=True):
            doubtful = self.ledger.doubtful[user]
            if [one for one in found if one not in doubtful] != self.ledger.stored[user]:
                self.ledger.fail("lost events", f"{user}: {len(found)} of {len(self.ledger.stored[user])}")
        await store.close()

    def _report(self, taken: dict[str, float]) -> dict[str, Any]:
        log = self.log.read_text()
        for found in re.findall(r"Traceback.*?(?=\n\d{4}-|\Z)", log, re.DOTALL)[:5]:
            self.ledger.fail("traceback in the log", found)
        quarter = max(1, len(self.memory) // 4)
        early = statistics.median(self.memory[quarter : 2 * quarter] or self.memory)
        late = statistics.median(self.memory[-quarter:])
        if self.seconds >= 600 and late > 1.1 * early + 8:
            self.ledger.fail("memory", f"{early:.1f} MB in the second quarter, {late:.1f} MB in the last")
        counts = dict(sorted(self.ledger.counts.items()))
        return {
            "seed": self.seed,
            "minutes": self.seconds / 60,
            "requests": sum(counts.get(kind, 0) for kind in CLIENTS),
            "counts": counts,
            "swaps": self.swaps,
            "kills": self.kills,
            "versions": dict(self.ledger.versions),
            "events": sum(map(len, self.ledger.stored.values())),
            "server": taken,
            "memory_mb": {"second quarter": early, "last quarter": late, "peak": max(self.memory)},
            "slowest_answer_seconds": round(self.ledger.slowest, 2),
            "failures": self.ledger.failures,
            "log": log[-5000:] if self.ledger.failures else "",
        }


async def end(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel all tasks. Before Python 3.12, `wait_for` ignores it if its result comes at the same moment."""
    running = set(tasks)
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=1)


def make_queries(seed: int) -> list[dict[str, Any]]:
    """Queries that all models answer: their ids start at 100."""
    numbers = random.Random(seed)
    return [
        {
            "history": [numbers.randint(100, 159) for _ in range(numbers.randint(0, 6))],
            "n": numbers.randint(1, 12),
            "exclude_seen": numbers.random() < 0.7,
            "deny": [numbers.randint(100, 159) for _ in range(numbers.randint(0, 3))],
        }
        for _ in range(40)
    ]


def make_bad(good: Path, folder: Path, seed: int, count: int = 24) -> list[Path]:
    """Damaged and malicious bundles: all of them are refused."""
    folder.mkdir()
    found: list[Path] = []
    numbers = np.random.default_rng(seed)
    from pathdex.storage.bundle import read_bundle

    bundle = in_memory(read_bundle(good))
    while len(found) < count:
        place = folder / f"{len(found)}"
        kind = len(found) % 4
        if kind == 0:  # Content that would crash compiled code, with valid checksums.
            draft = Draft(bundle.estimator, dict(bundle.settings), dict(bundle.arrays), dict(bundle.weights))
            mutate(draft, numbers)
            draft.write(place)
        else:
            shutil.copytree(good, place)
            files = sorted(one for one in place.iterdir() if one.name != "manifest.json")
            victim = files[int(numbers.integers(len(files)))]
            if kind == 1:  # One flipped bit.
                content = bytearray(victim.read_bytes())
                content[int(numbers.integers(len(content)))] ^= 1 << int(numbers.integers(8))
                victim.write_bytes(content)
            elif kind == 2:  # A copy that was cut off.
                victim.write_bytes(victim.read_bytes()[: int(numbers.integers(100))])
            else:
                items = np.load(place / "postings.items.npy")
                items[int(numbers.integers(len(items)))] = 10**9
                np.save(place / "postings.items.npy", items)
                sign_files(place)
        try:
            load(place)
        except PathdexError:
            found.append(place)
        else:
            shutil.rmtree(place)
    return found


def counters(port: int) -> dict[str, float]:
    import urllib.request

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=ANSWER_SECONDS) as answer:
        lines = answer.read().decode().splitlines()
    names = ("model_reloads", "model_reload_failures", "worker_starts", "user_store_errors")
    found = {line.split()[0]: float(line.split()[1]) for line in lines if not line.startswith("#") and "{" not in line}
    return {name: found[f"pathdex_{name}_total"] for name in names}


def is_worker(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"pathdex.server.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def is_stopped(pid: int) -> bool:
    """Whether no thread of a process runs any longer. On a busy machine, a signal takes a while."""
    threads = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(line.rpartition(")")[2].split()[0] in "TtZX" for line in threads)


def own_mb(pid: int) -> float:
    """Memory of a process that is not mapped from files."""
    with contextlib.suppress(OSError):
        found = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0
    return 0.0


def client_ports(pid: int) -> set[int]:
    """The ports of the clients that a process has accepted connections of."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {int(row[2].split(":")[1], 16) for row in rows if row[9] in inodes}


def raise_file_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
