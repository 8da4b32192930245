"""The processes of a stream as a user runs them: redis-server, `pathdex stream` and the events that feed them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import Self

from benchmarks.server_process import free_port
from benchmarks.sets import SETS
from pathdex.data.events import Event

START_SECONDS = 60.0
STOP_SECONDS = 120.0
STREAM = "events"


def events_in_time_order(name: str = "amazon-beauty", most: int | None = None) -> list[Event]:
    """The first events of a data set, in the order of their times."""
    data = SETS[name].read()
    assert data.times is not None
    owners = np.repeat(np.arange(data.num_users), data.sequences.lengths)
    order = np.argsort(data.times, kind="stable")[:most]
    users, items = data.users.ids(owners[order]), data.items.ids(data.sequences.values[order])
    times = np.asarray(data.times)[order].tolist()
    return [Event(user, item, time) for user, item, time in zip(users, items, times, strict=True)]


def write_lines(file: Path, events: Sequence[Event]) -> Path:
    """Events as JSON lines."""
    file.write_bytes(b"".join(encode_event(event) + b"\n" for event in events))
    return file


def encode_event(event: Event) -> bytes:
    return json.dumps({"user": event.user, "item": event.item, "time": event.time}).encode()


class RedisServer:
    """A private redis-server on a free port of the loopback. With `durable`, it stores every command before it answers,
    so that a kill loses nothing it has confirmed."""

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        program = shutil.which("redis-server") or shutil.which("redis-server", path="/usr/sbin")
        if program is None:
            raise SystemExit("redis-server is not installed; install it with: apt-get install redis-server")
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.source = f"redis://127.0.0.1:{self.port}/0?stream={STREAM}"
        kept = ["--appendonly", "yes", "--appendfsync", "always" if durable else "everysec"]
        self._command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
        self._command += kept
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it and wait until it has read its file."""
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(self._command, stdin=quiet, stdout=quiet, stderr=quiet)
        until = time.monotonic() + START_SECONDS
        while True:
            if self.process.poll() is not None or time.monotonic() > until:
                raise SystemExit("redis-server did not start")
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                    connection.sendall(b"PING\r\n")
                    if connection.recv(64).startswith(b"+PONG"):
                        return
            except OSError:
                pass
            time.sleep(0.02)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()

    def client(self, **options: Any) -> Any:
        """A client of redis-py."""
        import redis

        return redis.Redis(port=self.port, **options)


class StreamProcess:
    """`pathdex stream` as a process, with its metrics."""

    def __init__(self, source: str, folder: Path, *options: str, log: Path) -> None:
        self._port = free_port()
        self._command = [sys.executable, "-m", "pathdex", "stream", source, "--out", str(folder), *options]
        self._command += ["--metrics-port", str(self._port)]
        self.log = log
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        with self.log.open("ab") as written:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Let it finish its step, keep its state and exit; returns its code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode

    def metrics(self) -> dict[str, float]:
        """Figures by name without the prefix; empty if it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return {}
        found = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name.removeprefix("pathdex_stream_"): float(value) for name, value in found}

    def wait_for_events(self, number: int, seconds: float) -> float:
        """Wait until it has learned from so many events; returns the number of seconds."""
        began = time.monotonic()
        while self.metrics().get("events_total", 0) < number:
            if self.process.poll() is not None:
                raise SystemExit(f"the stream exited with code {self.process.returncode}:\n{self.log.read_text()}")
            if time.monotonic() - began > seconds:
                raise SystemExit(f"the stream has not read {number:,} events in {seconds:g} s")
            time.sleep(0.1)
        return time.monotonic() - began


def cpu_seconds(*pids: int) -> float:
    """Processor seconds of processes so far; 0 for those that are gone."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_mb(*pids: int) -> float:
    """Resident memory of processes in MB."""
    return _pages(1, pids)


def mapped_mb(*pids: int) -> float:
    """The part of the resident memory that is files and shared, which the kernel can take back or counts once."""
    return _pages(2, pids)


def _pages(column: int, pids: tuple[int, ...]) -> float:
    """A column of /proc/PID/statm in MB, over all processes that are still there."""
    pages = 0
    for pid in pids:
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[column])
        except OSError:
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
