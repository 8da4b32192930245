"""Routers that start together with their shards."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pathdex.errors import ServerError
from pathdex.server import routed_model
from pathdex.server.model_loader import ModelLoader, ServedModel
from pathdex.server.options import ServerOptions
from pathdex.server.serving import address_of, listen
from pathdex.server.worker import Worker
from tests.server.conftest import Running, running
from tests.server.shard_servers import PATIENT, failure, folders, wait_for

__all__ = ["folders"]


@contextmanager
def starting(urls: tuple[str, ...]) -> Iterator[tuple[Running, threading.Event, list[Exception]]]:
    """A router that may not be ready yet, an event that says when it is, and why it failed."""
    ready, failures = threading.Event(), list[Exception]()
    worker = Worker(ServerOptions(shards=urls, port=0, router=PATIENT), on_ready=lambda _: ready.set())
    listening = listen("127.0.0.1", 0)

    def serve() -> None:
        try:
            worker.serve_on(listening)
        except ServerError as error:
            failures.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield Running(address_of(listening), worker, thread), ready, failures
    finally:
        worker.drain(now=True)
        thread.join(30)
        assert not thread.is_alive()


@contextmanager
def loading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, threading.Event]]:
    """The URL of a server that loads its model until the event is set."""
    go, load = threading.Event(), ModelLoader.load

    def slow(self: ModelLoader) -> ServedModel:
        if self.model == folder:
            assert go.wait(60)
        return load(self)

    monkeypatch.setattr(ModelLoader, "load", slow)
    worker = Worker(ServerOptions(model=folder, port=0, watch=0.0))
    listening = listen("127.0.0.1", 0)
    thread = threading.Thread(target=worker.serve_on, args=(listening,))
    thread.start()
    try:
        yield address_of(listening), go
    finally:
        go.set()
        worker.drain(now=True)
        thread.join(30)
        assert not thread.is_alive()


def test_a_router_waits_for_shards_that_load(
    folders: dict[str, list[Path]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Longer than it would wait for a URL at which nothing answers; it is not ready meanwhile."""
    monkeypatch.setattr(routed_model, "REACH_SECONDS", 1e-9)
    caplog.set_level("INFO", "pathdex.server")
    first, second = folders["two"]
    with running(first) as server, loading(second, monkeypatch) as (url, go):
        wait_for(lambda: answers(url))
        with starting((server.url, url)) as (router, ready, failures):
            wait_for(lambda: "waiting for 1 of 2 shards" in caplog.text)
            answer = router.get("/health/ready")
            assert (answer.status, answer.json["status"]) == (503, "loading")
            assert "the model is still loading" in caplog.text
            assert not failures
            go.set()
            assert ready.wait(60)
            assert router.post("/v1/recommend", {"history": [100, 101]}).status == 200


def test_a_router_does_not_wait_for_ever_for_shards_that_load(
    folders: dict[str, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routed_model, "LOADING_SECONDS", 0.5)
    with loading(folders["two"][1], monkeypatch) as (url, _):
        wait_for(lambda: answers(url))
        assert "1 of 1 shards cannot be reached" in failure(url)


def test_a_router_waits_a_little_for_urls_that_cannot_be_reached(folders: dict[str, list[Path]]) -> None:
    listening = listen("127.0.0.1", 0)
    url = address_of(listening)
    listening.close()
    port = int(url.rsplit(":", 1)[1])
    with (
        running(folders["two"][0]) as server,
        starting((server.url, url)) as (_, ready, failures),
        running(folders["two"][1], listening=listen("127.0.0.1", port)),
    ):
        wait_for(lambda: ready.is_set() or failures)
        assert not failures


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health/live", timeout=20) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
