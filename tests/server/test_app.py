"""Routing and errors of the app, over a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pathdex.recommenders.popularity import Popularity
from tests.recommender_contract import TEXT_IDS
from tests.server.conftest import SLOW, Gate, Running, running


@pytest.fixture(scope="module")
def server(deep: Path) -> Iterator[Running]:
    with running(deep) as server:
        yield server


@pytest.fixture(scope="module")
def version(server: Running) -> str:
    assert server.worker.models.current is not None
    return server.worker.models.current.version


def test_every_response_has_the_model_version(server: Running, version: str) -> None:
    for path in ("/v1/model", "/health/live", "/health/ready", "/metrics", "/openapi.json", "/docs", "/nowhere"):
        assert server.get(path).headers["x-pathdex-model"] == version
    for path in ("/v1/model", "/health/ready", "/nowhere", "/v1/items/item%203", "/v1/items/nothing"):
        assert server.get(path).json["model"] == version
    for path, body in (
        ("/v1/similar", {"item": TEXT_IDS[3]}),
        ("/v1/explain", {"item": TEXT_IDS[3], "history": []}),
        ("/v1/why-not", {"item": TEXT_IDS[3], "history": []}),
        ("/v1/recommend", {"history": [2.5]}),
        ("/v1/recommend", b"not json"),
    ):
        assert server.post(path, body).json["model"] == version


def test_unknown_paths_and_items_are_404(server: Running) -> None:
    for path in ("//", "/v1", "/v1/items/", "/v1/items/a/b", "/v1/recommend/", "/v2/recommend"):
        answer = server.get(path)
        assert (answer.status, answer.json["error"]["type"]) == (404, "ServerError")
    answer = server.get("/v1/items/nothing")
    assert answer.status == 404
    assert answer.json["error"] == {
        "type": "QueryError",
        "message": "id='nothing': is not in the catalogue of 32 items; request a known id",
        "field": "id",
        "value": "nothing",
        "rule": "is not in the catalogue of 32 items",
        "remedy": "request a known id",
    }


def test_a_wrong_method_is_405(server: Running) -> None:
    for method, path, allowed in (
        ("GET", "/v1/recommend", "POST"),
        ("PUT", "/v1/recommend", "POST"),
        ("POST", "/v1/model", "GET, HEAD"),
        ("PUT", "/v1/items/x", "DELETE, GET, HEAD"),
        ("GET", "/v1/items", "POST, DELETE"),
        ("OPTIONS", "/metrics", "GET, HEAD"),
    ):
        answer = server.request(method, path)
        assert (answer.status, answer.headers["allow"]) == (405, allowed)
        assert answer.message == f"{method} is not allowed on {_route(path)}; use {allowed}"


def _route(path: str) -> str:
    return "/v1/items/{id}" if path.startswith("/v1/items/") else path


def test_head_is_get_without_a_body(server: Running) -> None:
    head, get = server.request("HEAD", "/v1/model"), server.get("/v1/model")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]


def test_a_full_queue_is_429(popular: Path, gate: Gate) -> None:
    waiting, go = gate
    with running(popular, {"queue": 1}) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(server.post, "/v1/recommend", SLOW)
        assert waiting.wait(10)
        refused = server.post("/v1/recommend", {"history": []})
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert refused.message == "the server is busy with 1 requests; try again later"
        assert [server.get(path).status for path in ("/health/live", "/health/ready", "/metrics")] == [200, 200, 200]
        go.set()
        assert first.result().status == 200
        assert server.post("/v1/recommend", {"history": []}).status == 200


def test_a_slow_request_is_504(popular: Path, gate: Gate) -> None:
    with running(popular, {"timeout": 0.05}) as server:
        late = server.post("/v1/recommend", SLOW)
        assert (late.status, late.headers["retry-after"]) == (504, "1")
        assert late.message == "no response within 0.05 s; request less, or raise the server's limit"
        assert server.post("/v1/recommend", {"history": []}).status == 200


def test_requests_while_the_model_loads_are_503(popular: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(popular) as server:
        monkeypatch.setattr(server.worker.models, "current", None)
        ready = server.get("/health/ready")
        assert (ready.status, ready.json) == (503, {"status": "loading", "model": None})
        assert server.get("/health/live").status == 200
        answer = server.post("/v1/recommend", {"history": []})
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.message == "the model is still loading; wait until /health/ready returns 200"


def test_an_internal_error_is_500_without_a_traceback(
    popular: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a secret")

    with running(popular) as server:
        monkeypatch.setattr(Popularity, "rank", fail)
        answer = server.post("/v1/recommend", {"history": []})
    assert (answer.status, answer.message) == (500, "internal error; see the server log")
    assert b"secret" not in answer.body
    assert "ZeroDivisionError: a secret" in caplog.text
