"""Tiny saved models, and servers that run in a thread of the test process."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import pathdex
from pathdex.recommenders.popularity import Popularity
from pathdex.server.limits import ServerLimits
from pathdex.server.options import ServerOptions
from pathdex.server.serving import address_of, listen
from pathdex.server.worker import Worker
from tests.explorer.conftest import run_folder, trained  # noqa: F401
from tests.recommender_contract import INTEGER_IDS, TEXT_IDS, grouped_data
from tests.tiny import TINY


@dataclass(frozen=True)
class HTTPAnswer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        text: str = self.json["error"]["message"]
        return text


@dataclass
class Running:
    """A running server."""

    url: str
    worker: Worker
    thread: threading.Thread

    def stop(self) -> None:
        """Stop it before the end of its block."""
        self.worker.drain(now=True)
        self.thread.join(30)

    def request(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> HTTPAnswer:
        """Send one request on a new connection; a body that is not bytes is sent as JSON."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=20)
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            kind = {} if sent is None else {"Content-Type": "application/json"}
            connection.request(method, path, sent, {**kind, **(headers or {})})
            answer = connection.getresponse()
            return HTTPAnswer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> HTTPAnswer:
        return self.request("GET", path, headers=headers)

    def post(self, path: str, body: Any, **headers: str) -> HTTPAnswer:
        return self.request("POST", path, body, headers)

    def metric(self, name: str) -> int:
        lines = self.get("/metrics").body.decode().splitlines()
        return int(next(line for line in lines if line.startswith(f"{name} ")).split()[1])

    def metric_of(self, route: str) -> int:
        """How many requests of a route were answered with status 200."""
        lines = self.get("/metrics").body.decode().splitlines()
        start = f'pathdex_http_requests_total{{route="{route}",status="200"}} '
        return sum(int(line.removeprefix(start)) for line in lines if line.startswith(start))


@contextmanager
def running(
    model: Path, limits: dict[str, Any] | None = None, listening: socket.socket | None = None, **options: Any
) -> Iterator[Running]:
    """A ready server in a thread, on a free port or a given socket; it checks for models only with `watch`."""
    ready = threading.Event()
    given = {"watch": 0.0, **options, "limits": ServerLimits(**(limits or {}))}
    worker = Worker(ServerOptions(model=model, port=0, **given), on_ready=lambda _: ready.set())
    listening = listening or listen("127.0.0.1", 0)
    thread = threading.Thread(target=worker.serve_on, args=(listening,))
    url = address_of(listening)
    thread.start()
    try:
        assert ready.wait(60)
        yield Running(url, worker, thread)
    finally:
        worker.drain(now=True)
        thread.join(30)
        assert not thread.is_alive()


Gate = tuple[threading.Event, threading.Event]
SLOW = {"queries": [{"history": [], "n": 7}]}
"""A request that `gate` holds."""


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Popularity models hold queries with n = 7 until the second event; the first is set while one is held."""
    waiting, go = threading.Event(), threading.Event()
    rank = Popularity.rank

    def slow(self: Popularity, histories: Any, n: int, *args: Any, **options: Any) -> Any:
        if n == 7:
            waiting.set()
            assert go.wait(60)
        return rank(self, histories, n, *args, **options)

    monkeypatch.setattr(Popularity, "rank", slow)
    yield waiting, go
    go.set()


@pytest.fixture(scope="session")
def popular(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved popularity model with text ids."""
    return pathdex.Popularity().fit(grouped_data(TEXT_IDS)).save(tmp_path_factory.mktemp("models") / "popular")


@pytest.fixture(scope="session")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved popularity model with integer ids."""
    return pathdex.Popularity().fit(grouped_data(INTEGER_IDS)).save(tmp_path_factory.mktemp("models") / "numbered")


@pytest.fixture(scope="session")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved Deep Retrieval model with text ids, trained enough to separate the groups."""
    better = {**TINY, "batch_size": 64, "structure_batch_size": 64, "epochs": 3}
    model = pathdex.DeepRetrieval(**better, learning_rate=0.02, item_learning_rate=0.02, threads=1)
    return model.fit(grouped_data(TEXT_IDS), callbacks=()).save(tmp_path_factory.mktemp("models") / "deep")
