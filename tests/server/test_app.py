"""What the server answers, over a real socket."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import pathdex
from pathdex.errors import ServerError
from pathdex.recommenders.popularity import Popularity
from tests.recommender_contract import TEXT_IDS
from tests.server.conftest import Running, running


@pytest.fixture(scope="module")
def server(deep: Path) -> Iterator[Running]:
    with running(deep) as server:
        yield server


@pytest.fixture(scope="module")
def model(deep: Path) -> pathdex.DeepRetrieval:
    return pathdex.DeepRetrieval.load(deep)


@pytest.fixture(scope="module")
def version(server: Running) -> str:
    assert server.worker.live.current is not None
    return server.worker.live.current.version


def items(answer: list[Any]) -> list[dict[str, Any]]:
    return [{"id": id, "score": score} for id, score in answer]


def test_one_query(server: Running, model: pathdex.DeepRetrieval, version: str) -> None:
    body = {"history": TEXT_IDS[:2], "n": 3, "beam": 8, "exclude_seen": False, "deny": TEXT_IDS[4:5], "explain": False}
    answer = server.post("/v1/recommend", body)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    found = model.recommend(TEXT_IDS[:2], 3, beam=8, exclude_seen=False, deny=TEXT_IDS[4:5])
    assert answer.json == {"model": version, "items": items(found)}


def test_many_queries_each_with_its_own_settings(server: Running, model: pathdex.DeepRetrieval, version: str) -> None:
    queries = [
        {"history": TEXT_IDS[:1], "n": 2},
        {"history": [], "n": 3, "candidates": 9},
        {"history": TEXT_IDS[8:10], "n": 2, "allow": TEXT_IDS[:20]},
    ]
    answer = server.post("/v1/recommend", {"queries": queries})
    wanted = [
        model.recommend(TEXT_IDS[:1], 2),
        model.recommend([], 3, candidates=9),
        model.recommend(TEXT_IDS[8:10], 2, allow=TEXT_IDS[:20]),
    ]
    assert answer.json == {"model": version, "results": [{"items": items(one)} for one in wanted]}


def test_nulls_are_like_fields_that_are_left_out(server: Running) -> None:
    nulls = dict.fromkeys(("user", "beam", "candidates", "allow", "where"))
    plain = server.post("/v1/recommend", {"history": TEXT_IDS[:2]})
    assert server.post("/v1/recommend", {"history": TEXT_IDS[:2], **nulls}).json == plain.json


def test_unknown_history_items_are_counted(server: Running) -> None:
    known = server.post("/v1/recommend", {"history": TEXT_IDS[:1], "n": 2}).json
    mixed = server.post("/v1/recommend", {"history": ["x", TEXT_IDS[0], 7], "n": 2}).json
    assert mixed == {**known, "unknown": 2}


def test_an_explained_answer(server: Running, model: pathdex.DeepRetrieval) -> None:
    found = server.post("/v1/recommend", {"history": TEXT_IDS[:2], "n": 2, "explain": True}).json["items"]
    for item in found:
        wanted = model.explain(TEXT_IDS[:2], item["id"])
        assert [tuple(path["nodes"]) for path in item["explanation"]["paths"]] == [path.nodes for path in wanted.paths]
        assert item["explanation"]["score"] == pytest.approx(item["score"])


def test_every_answer_names_the_model(server: Running, version: str) -> None:
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


def test_an_item_and_its_paths(server: Running, model: pathdex.DeepRetrieval, version: str) -> None:
    paths = model.item_paths(TEXT_IDS[3])
    answer = server.get("/v1/items/item%203")
    assert answer.json == {"model": version, "id": TEXT_IDS[3], "paths": [list(path) for path in paths]}
    written = "-".join(map(str, paths[0]))
    on_it = server.get(f"/v1/paths/{written}").json
    assert on_it == {"model": version, "path": list(paths[0]), "items": model.path_items(paths[0])}


def test_what_is_not_there_is_404(server: Running) -> None:
    for path in ("/", "/v1", "/v1/items/", "/v1/items/a/b", "/v1/recommend/", "/v2/recommend"):
        answer = server.get(path)
        assert (answer.status, answer.json["error"]["type"]) == (404, "ServerError")
    answer = server.get("/v1/items/nothing")
    assert answer.status == 404
    assert answer.json["error"] == {
        "type": "QueryError",
        "message": "id='nothing': is not in the catalogue of 32 items; ask for a known id",
        "field": "id",
        "value": "nothing",
        "rule": "is not in the catalogue of 32 items; ask for a known id",
    }


@pytest.mark.parametrize("path", ["a", "1", "1-2-3", "0--1", "0-99", "-1-0", "1e3-0", "%F0-0", "9999999999-0"])
def test_a_path_must_be_one(server: Running, path: str) -> None:
    answer = server.get(f"/v1/paths/{path}")
    assert (answer.status, answer.json["error"]["field"]) == (422, "path")


def test_a_wrong_method_is_405_and_names_the_right_one(server: Running) -> None:
    for method, path, allowed in (
        ("GET", "/v1/recommend", "POST"),
        ("PUT", "/v1/recommend", "POST"),
        ("POST", "/v1/model", "GET, HEAD"),
        ("DELETE", "/v1/items/x", "GET, HEAD"),
        ("OPTIONS", "/metrics", "GET, HEAD"),
    ):
        answer = server.ask(method, path)
        assert (answer.status, answer.headers["allow"]) == (405, allowed)
        assert answer.message == f"{method} is not a method of {_route(path)}; use {allowed}"


def _route(path: str) -> str:
    return "/v1/items/{id}" if path.startswith("/v1/items/") else path


def test_head_is_get_without_a_body(server: Running) -> None:
    head, get = server.ask("HEAD", "/v1/model"), server.get("/v1/model")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]


def test_facts_of_the_model(server: Running, model: pathdex.DeepRetrieval) -> None:
    facts = server.get("/v1/model").json
    assert (facts["estimator"], facts["items"], facts["ids"]) == ("deep-retrieval", 32, "str")
    assert facts["config"] == model.config.to_dict()
    assert facts["health"] == json.loads(json.dumps(model.health().to_dict()))
    assert facts["attributes"] == []


def send_chunks(server: Running, *chunks: bytes) -> int:
    """POST a body without a length; returns the status."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    try:
        connection.request("POST", "/v1/recommend", iter(chunks), encode_chunked=True)
        with connection.getresponse() as answer:
            return answer.status
    finally:
        connection.close()


def test_a_body_may_come_in_pieces(server: Running) -> None:
    body = json.dumps({"history": TEXT_IDS[:2], "n": 1}).encode()
    assert send_chunks(server, body[:9], body[9:]) == 200


def test_a_compressed_body_is_415(server: Running) -> None:
    answer = server.ask("POST", "/v1/recommend", b"\x1f\x8b", {"Content-Encoding": "gzip"})
    assert answer.status == 415
    assert answer.message == "content-encoding 'gzip': must be left out; send plain JSON"


@pytest.mark.parametrize("size", [100_001, 300_000])
def test_a_body_that_is_too_large_is_413(popular: Path, size: int) -> None:
    with running(popular, {"max_bytes": 100_000}) as server:
        answer = server.post("/v1/recommend", b'{"history": []}'.ljust(size))
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert answer.json["error"]["rule"] == "must be at most 100000 bytes"
        assert server.post("/v1/recommend", b'{"history": []}'.ljust(100_000)).status == 200


def test_a_huge_body_is_not_read_to_its_end(popular: Path) -> None:
    with running(popular, {"max_bytes": 1000}) as server, socket.create_connection(_place(server)) as connection:
        connection.sendall(b"POST /v1/recommend HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def _place(server: Running) -> tuple[str, int]:
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def test_chunks_that_become_too_large_are_413(popular: Path) -> None:
    with running(popular, {"max_bytes": 1000}) as server:
        assert send_chunks(server, *[b" " * 600] * 3) == 413


def test_a_token_is_asked_for(popular: Path) -> None:
    with running(popular, token="s3cret") as server:
        for given in (None, "Bearer wrong", "s3cret", "Bearer s3cret2", "Bearer \u00e9"):
            answer = server.ask("POST", "/v1/recommend", {"history": []}, {"Authorization": given} if given else {})
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert answer.message == "this server needs a token; send it as: Authorization: Bearer TOKEN"
        assert server.post("/v1/recommend", {"history": []}, Authorization="Bearer s3cret").status == 200
        with pathdex.Client(server.url, "s3cret") as client:
            assert client.recommend([], 1)
        with pathdex.Client(server.url, "guess") as client, pytest.raises(ServerError, match="needs a token") as caught:
            client.recommend([])
        assert caught.value.status == 401
        paths = ("/health/live", "/health/ready", "/docs", "/openapi.json", "/metrics", "/v1/model")
        assert [server.get(path).status for path in paths] == [200, 200, 200, 200, 401, 401]
        assert "securitySchemes" in server.get("/openapi.json").json["components"]


def test_metrics_may_be_public(popular: Path) -> None:
    with running(popular, token="s3cret", public_metrics=True) as server:
        assert server.get("/metrics").status == 200
        assert server.get("/v1/model").status == 401


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Popularity models wait with answers to n = 7 until the second event; the first tells that one waits."""
    waiting, go = threading.Event(), threading.Event()
    rank = Popularity.rank

    def slow(self: Popularity, histories: Any, n: int, *args: Any, **options: Any) -> Any:
        if n == 7:
            waiting.set()
            assert go.wait(20)
        return rank(self, histories, n, *args, **options)

    monkeypatch.setattr(Popularity, "rank", slow)
    yield waiting, go
    go.set()


SLOW = {"queries": [{"history": [], "n": 7}]}


def test_a_full_queue_is_429(popular: Path, held: tuple[threading.Event, threading.Event]) -> None:
    waiting, go = held
    with running(popular, {"queue": 1}) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(server.post, "/v1/recommend", SLOW)
        assert waiting.wait(10)
        refused = server.post("/v1/recommend", {"history": []})
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert refused.message == "the server has 1 requests in hand already; try again in a moment"
        assert [server.get(path).status for path in ("/health/live", "/health/ready", "/metrics")] == [200, 200, 200]
        go.set()
        assert first.result().status == 200
        assert server.post("/v1/recommend", {"history": []}).status == 200


def test_an_answer_that_takes_too_long_is_504(popular: Path, held: tuple[threading.Event, threading.Event]) -> None:
    with running(popular, {"timeout": 0.05}) as server:
        late = server.post("/v1/recommend", SLOW)
        assert (late.status, late.headers["retry-after"]) == (504, "1")
        assert late.message == "no answer within 0.05 s; ask for less, or have the server's limit raised"
        assert server.post("/v1/recommend", {"history": []}).status == 200


def test_requests_in_flight_are_finished_before_the_end(
    popular: Path, held: tuple[threading.Event, threading.Event]
) -> None:
    waiting, go = held
    with ThreadPoolExecutor(1) as pool:
        with running(popular, {"drain": 0.5}) as server:
            first = pool.submit(server.post, "/v1/recommend", SLOW)
            assert waiting.wait(10)
            server.worker.leave()
            leaving = server.get("/health/ready")
            assert (leaving.status, leaving.json["status"]) == (503, "leaving")
            assert server.get("/health/live").status == 200
            go.set()
        assert first.result().status == 200


def test_before_the_model_is_there_nothing_is_ready(popular: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(popular) as server:
        monkeypatch.setattr(server.worker.live, "current", None)
        ready = server.get("/health/ready")
        assert (ready.status, ready.json) == (503, {"status": "loading", "model": None})
        assert server.get("/health/live").status == 200
        answer = server.post("/v1/recommend", {"history": []})
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.message == "the model is still being loaded; wait until /health/ready answers 200"


def test_a_failure_of_the_server_shows_no_traceback(
    popular: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a secret")

    with running(popular) as server:
        monkeypatch.setattr(Popularity, "rank", fail)
        answer = server.post("/v1/recommend", {"history": []})
    assert (answer.status, answer.message) == (500, "the server failed; its log says why")
    assert b"secret" not in answer.body
    assert "ZeroDivisionError: a secret" in caplog.text


def test_the_access_log_is_json(popular: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with running(popular, access_log=True) as server:
        server.post("/v1/recommend", {"history": []})
        server.get("/nowhere")
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("POST", "/v1/recommend", 200),
        ("GET", "/nowhere", 404),
    ]
    assert {*lines[0]} == {"time", "client", "method", "path", "status", "ms", "model"}


def test_where_needs_a_catalogue_table(server: Running) -> None:
    answer = server.post("/v1/recommend", {"history": [], "where": {"colour": "red"}})
    assert (answer.status, answer.json["error"]["field"]) == (422, "where")


def test_where_uses_the_catalogue_table(popular: Path, tmp_path: Path) -> None:
    lines = ["item_id,colour", *(f"{one},{'red' if place < 3 else 'blue'}" for place, one in enumerate(TEXT_IDS))]
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    with running(popular, catalogue=tmp_path / "shop.csv") as server:
        answer = server.post("/v1/recommend", {"history": [], "where": {"colour": ["red"]}}).json
        assert sorted(item["id"] for item in answer["items"]) == TEXT_IDS[:3]
        assert server.get("/v1/model").json["attributes"] == ["colour"]
        wrong = server.post("/v1/recommend", {"history": [], "where": {"color": ["red"]}})
        assert (wrong.status, wrong.json["error"]["type"]) == (422, "QueryError")
