"""`pathdex serve` as a process: signals, kills, several workers."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pathdex as package
from pathdex.errors import ServerError
from tests.cli.conftest import Pathdex
from tests.recommender_contract import TEXT_IDS, grouped_data

ENTRY = [sys.executable, "-c", "from pathdex.cli import main; main()"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return package.Popularity().fit(grouped_data(TEXT_IDS)).save(tmp_path_factory.mktemp("served") / "bundle")


@contextmanager
def serving(*arguments: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A ready server process and its address."""
    command = [*ENTRY, "serve", *(str(one) for one in arguments), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = re.search(r" at (http://127\.0\.0\.1:\d+)", line)
        assert found is not None, (line, process.stderr and process.poll() is not None and process.stderr.read())
        yield process, found[1]
    finally:
        process.kill()
        process.communicate()


def wait_for(rule: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while not (found := rule()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def test_it_prints_its_address_and_stops_on_sigterm(model: Path) -> None:
    with serving(model) as (process, address), package.Client(address) as client:
        assert client.recommend([], 3) == package.load(model).recommend([], 3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stdout is not None
        assert process.stderr is not None
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_acknowledged_events_survive_kill_9(model: Path, tmp_path: Path) -> None:
    store = tmp_path / "users.sqlite"
    acknowledged: list[list[int]] = [[] for _ in range(4)]

    def write(user: int, address: str) -> None:
        with package.Client(address) as client:
            for number in range(100_000):
                try:
                    client.add_events(user, [number])
                except ServerError:
                    return
                acknowledged[user].append(number)

    with serving(model, "--user-store", store, "--max-history", 100_000) as (process, address):
        threads = [threading.Thread(target=write, args=(user, address)) for user in range(4)]
        for thread in threads:
            thread.start()
        wait_for(lambda: min(map(len, acknowledged)) >= 20)
        process.kill()
        for thread in threads:
            thread.join()

    import asyncio

    from pathdex.server.stores import open_store

    async def read() -> list[list[Any]]:
        opened = open_store(str(store), 100_000)
        try:
            return await opened.histories([str(user) for user in range(4)])
        finally:
            await opened.close()

    for stored, known in zip(asyncio.run(read()), acknowledged, strict=True):
        # Besides the acknowledged events, at most the one in flight is stored.
        assert stored[: len(known)] == known
        assert len(stored) <= len(known) + 1


def metric(client: package.Client, name: str) -> int:
    import urllib.request

    with urllib.request.urlopen(f"{client.url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


def children(process: subprocess.Popen[str]) -> list[int]:
    return [int(one) for one in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to find the workers")
def test_a_dead_worker_is_replaced(model: Path, tmp_path: Path) -> None:
    arguments = (model, "--workers", 2, "--user-store", tmp_path / "users.sqlite", "--watch", 0.2)
    with serving(*arguments) as (process, address), package.Client(address) as client:
        first = children(process)
        assert len(first) == 2
        client.add_events("ada", TEXT_IDS[:2])
        # Every worker sees the events and the metrics of the others.
        for _ in range(10):
            with package.Client(address) as another:
                assert another.recommend_user("ada", 32) == client.recommend(TEXT_IDS[:2], 32)
        assert metric(client, "pathdex_user_events_total") == 2
        assert metric(client, "pathdex_workers_ready") == 2

        os.kill(first[0], signal.SIGKILL)
        for _ in range(20):
            with package.Client(address) as another:
                assert another.recommend([], 3)
        wait_for(lambda: metric(client, "pathdex_worker_starts_total") == 3)
        wait_for(lambda: metric(client, "pathdex_workers_ready") == 2)
        second = children(process)
        assert len(second) == 2
        assert first[0] not in second
        assert first[1] in second

        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert re.findall(r"WARNING (.*)", process.stderr.read()) == ["worker 0 exited with code -9; restarting it"]


def test_all_workers_append_to_one_stream(model: Path, tmp_path: Path) -> None:
    stream = tmp_path / "events.jsonl"
    with serving(model, "--workers", 2, "--events", stream) as (process, address):
        for number in range(20):
            with package.Client(address) as client:  # A new connection may go to another worker.
                assert client.add_events(number, [number]) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    lines = stream.read_text().splitlines()
    assert sorted(int(re.findall(r'"item": (\d+)', line)[0]) for line in lines) == list(range(20))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere does not exist; pass the folder that `pathdex train`"),
        (["MODEL", "--catalogue", "nowhere.csv"], "catalogue='nowhere.csv': does not exist; check the path"),
        (["MODEL", "--max-n", 0], "max_n=0: must be at least 1; items recommended per query"),
        (["MODEL", "--workers", 0], "workers=0: must be at least 1"),
        (["MODEL", "--port", 70000], "port=70000: must be between 0 and 65535; 0 takes any free port"),
        (["MODEL", "--watch", -1], "watch=-1.0: must be at least 0; 0 never checks for a new model"),
        (["MODEL", "--token-file", "nowhere"], "token_file='nowhere': cannot be read"),
        (["MODEL", "--host", "203.0.113.7"], "address='203.0.113.7:8000': cannot listen there"),
        (["MODEL", "--user-store", "mysql://x", "--port", 0], "user_store='mysql://x': must be a file or a URL"),
        (["MODEL", "--events", "events.csv"], "events are appended as JSON lines, to a file that ends in .jsonl or"),
        (
            ["MODEL", "--events", "ftp://x"],
            "place='ftp://...': the scheme ftp:// is unknown; use a .jsonl file or redis",
        ),
        (["MODEL", "--events", "nowhere/events.jsonl", "--port", 0], "cannot append to nowhere/events.jsonl: No such"),
    ],
)
def test_invalid_options(pathdex: Pathdex, model: Path, arguments: list[Any], message: str) -> None:
    outcome = pathdex("serve", *(model if one == "MODEL" else one for one in arguments), fails=1)
    assert message in outcome.stderr
    assert outcome.stdout == ""


def test_a_port_in_use(pathdex: Pathdex, model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = pathdex("serve", model, "--port", port, fails=1)
    assert (
        f"address='127.0.0.1:{port}': cannot listen there (Address already in use); choose another host or port"
        in outcome.stderr
    )


def test_missing_packages_name_the_extra(pathdex: Pathdex, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.system.Feature.available", False)
    message = (
        "the HTTP server (pathdex serve, pathdex explore) needs uvicorn; install it with: pip install 'pathdex[server]'"
    )
    assert message in pathdex("serve", model, fails=1).stderr
