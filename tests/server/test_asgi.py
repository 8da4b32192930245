"""Request bodies and responses, over a real socket."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pathdex.errors import Problem
from pathdex.server.asgi import JSON, Response, send_error, send_response
from pathdex.server.errors import RequestError
from tests.recommender_contract import TEXT_IDS
from tests.server.conftest import Running, running


@pytest.fixture(scope="module")
def server(popular: Path) -> Iterator[Running]:
    with running(popular) as server:
        yield server


def messages(work: Any) -> list[dict[str, Any]]:
    """What a function sends."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(work(send))
    return sent


def test_a_response_has_length_type_and_model() -> None:
    start, body = messages(lambda send: send_response(send, Response(b"{}", 503, ((b"a", b"b"),)), JSON, "v1"))
    assert (start["status"], body["body"]) == (503, b"{}")
    assert dict(start["headers"]) == {
        b"content-type": b"application/json",
        b"content-length": b"2",
        b"a": b"b",
        b"x-pathdex-model": b"v1",
    }


@pytest.mark.parametrize(("status", "closes"), [(413, True), (422, False)])
def test_only_an_unread_body_closes_the_connection(status: int, closes: bool) -> None:
    start, body = messages(lambda send: send_error(send, RequestError(status, Problem("wrong")), None))
    assert ((b"connection", b"close") in start["headers"]) == closes
    assert json.loads(body["body"])["error"]["rule"] == "wrong"


def send_chunks(server: Running, *chunks: bytes) -> int:
    """POST a body without a length; returns the status."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    try:
        kind = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/recommend", iter(chunks), kind, encode_chunked=True)
        with connection.getresponse() as answer:
            return answer.status
    finally:
        connection.close()


def test_a_chunked_body(server: Running) -> None:
    body = json.dumps({"history": TEXT_IDS[:2], "n": 1}).encode()
    assert send_chunks(server, body[:9], body[9:]) == 200


def test_a_trailer_is_no_header(server: Running) -> None:
    """Its body is JSON, but only the trailer says so."""
    place, body = urlsplit(server.url), json.dumps({"history": TEXT_IDS[:2], "n": 1}).encode()
    head = b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection((place.hostname, place.port), timeout=20) as opened:
        opened.sendall(head + b"%x\r\n%b\r\n0\r\nContent-Type: application/json\r\n\r\n" % (len(body), body))
        assert opened.recv(1000).startswith(b"HTTP/1.1 415 ")


def test_a_compressed_body_is_415(server: Running) -> None:
    answer = server.request("POST", "/v1/recommend", b"\x1f\x8b", {"Content-Encoding": "gzip"})
    assert answer.status == 415
    assert answer.message == "content-encoding='gzip': compressed bodies are not supported; send plain JSON"


@pytest.mark.parametrize("size", [100_001, 300_000])
def test_a_large_body_is_413(popular: Path, size: int) -> None:
    with running(popular, {"max_bytes": 100_000}) as server:
        answer = server.post("/v1/recommend", b'{"history": []}'.ljust(size))
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert answer.json["error"]["rule"] == "the body must be at most 100000 bytes"
        assert server.post("/v1/recommend", b'{"history": []}'.ljust(100_000)).status == 200


def test_a_huge_body_is_not_read_to_its_end(popular: Path) -> None:
    with running(popular, {"max_bytes": 1000}) as server, socket.create_connection(_place(server)) as connection:
        head = b"POST /v1/recommend HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b"Content-Length: 1000000000\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def _place(server: Running) -> tuple[str, int]:
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def test_a_large_chunked_body_is_413(popular: Path) -> None:
    with running(popular, {"max_bytes": 1000}) as server:
        assert send_chunks(server, *[b" " * 600] * 3) == 413


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
def test_a_body_that_is_not_declared_as_json_is_415(server: Running, kind: str) -> None:
    """A web page of another site can send these without asking first."""
    answer = server.request("POST", "/v1/recommend", {"history": []}, {"Content-Type": kind})
    assert answer.status == 415
    assert answer.message == (
        f"content-type={kind or None!r}: must be application/json; send the header: Content-Type: application/json"
    )


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_is_declared_in_any_case_and_with_parameters(server: Running, kind: str) -> None:
    assert server.request("POST", "/v1/recommend", {"history": []}, {"Content-Type": kind}).status == 200
