"""Real brokers for the tests, on free ports, and readers that stop."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pathdex.data.event_sources.base import EventSource
from pathdex.data.events import Event, EventBatch, Position

EVENTS = [Event(f"u{number % 7}", number, float(number), 1.0 + number % 3) for number in range(60)]


def read_all(source: EventSource, size: int = 16, timeout: float = 0.0) -> list[EventBatch]:
    """Read until a finite source ends or an endless one has nothing more."""
    batches = []
    while (batch := source.read(size, timeout)) is not None and (batch.events or batch.malformed or batch.lost):
        batches.append(batch)
    return batches


def read_until(source: EventSource, count: int, size: int = 16, seconds: float = 20.0) -> list[EventBatch]:
    """Read until `count` events have come."""
    batches: list[EventBatch] = []
    deadline = time.monotonic() + seconds
    while sum(len(batch.events) for batch in batches) < count:
        assert time.monotonic() < deadline, "the events did not come"
        batch = source.read(size, 0.2)
        assert batch is not None
        batches.append(batch)
    return batches


def events_of(batches: list[EventBatch]) -> list[Event]:
    return [event for batch in batches for event in batch.events]


def read_and_resume(open_again: Callable[[], EventSource], stops: list[tuple[int, bool]], count: int) -> list[Event]:
    """Read batches of the given sizes; where the flag is set, the reader is killed: its last batch does not count."""
    events: list[Event] = []
    position: Position | None = None
    source = open_again()
    source.seek(None)
    for size, killed in stops:
        batch = source.read(size, 0.2)
        if killed:
            source.close()
            source = open_again()
            source.seek(position)
        elif batch is not None:
            events += batch.events
            position = batch.position
            source.acknowledge(position)
    while len(events) < count:
        batch = source.read(16, 0.5)
        if batch is None:
            break
        events += batch.events
    source.close()
    return events


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class Broker:
    """A server process that can be restarted on the same port."""

    def __init__(self, command: list[str], port: int, address: str) -> None:
        self.command, self.port, self.address = command, port, address
        self.start()

    def start(self) -> None:
        quiet: Any = subprocess.DEVNULL
        self.process = subprocess.Popen(self.command, stdin=quiet, stdout=quiet, stderr=quiet)
        deadline = time.monotonic() + 20
        while True:
            assert self.process.poll() is None, "the broker did not start"
            assert time.monotonic() < deadline
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                    connection.sendall(b"PING\r\n")  # Both Redis and NATS know it.
                    if not connection.recv(4096).startswith(b"-LOADING"):
                        return
            except OSError:
                pass
            time.sleep(0.02)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)


def need(program: str) -> str:
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin")
    if found is None:
        pytest.skip(f"{program} is not installed; install it with: apt-get install {program}")
    return found


@pytest.fixture(scope="module")
def redis_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Redis that stores every command before it answers."""
    folder, port = tmp_path_factory.mktemp("redis"), free_port()
    command = [need("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    broker = Broker([*command, "--appendonly", "yes", "--appendfsync", "always"], port, f"redis://127.0.0.1:{port}/0")
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def nats_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A NATS server with JetStream on disk."""
    folder, port = tmp_path_factory.mktemp("nats"), free_port()
    command = [need("nats-server"), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
    broker = Broker(command, port, f"nats://127.0.0.1:{port}")
    yield broker
    broker.kill()


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    return tmp_path / "dead.jsonl"
