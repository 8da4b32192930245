"""Slow, greedy or broken clients do not block the server."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pathdex.server.connections import MAX_HEADER_BYTES
from tests.server.conftest import SLOW, Gate, Running, running

HEAD = b"POST /v1/recommend HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 15\r\n"
WHOLE = HEAD + b'\r\n{"history": []}'


@pytest.fixture(scope="module")
def server(popular: Path) -> Iterator[Running]:
    with running(popular, {"read_timeout": 0.3, "keep_alive": 0.3}) as server:
        yield server


def connect(server: Running) -> socket.socket:
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=20)


def everything(connection: socket.socket) -> bytes:
    """All data until the server closes the connection."""
    found = b""
    while part := connection.recv(65536):
        found += part
    return found


def test_an_incomplete_request_is_408(server: Running) -> None:
    beginnings = [b"", b"GE", HEAD, HEAD + b"\r\n", HEAD + b'\r\n{"hist']
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(server)) for _ in beginnings]
        for connection, sent in zip(connections, beginnings, strict=True):
            connection.sendall(sent)
        for connection in connections:
            answer = everything(connection)
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b'"message":"the request was not received within 0.3 s"' in answer


def test_a_slow_request_is_408(server: Running) -> None:
    with connect(server) as connection:
        answer = b""
        connection.settimeout(0.05)
        for place in range(400):
            try:
                connection.sendall(WHOLE[place : place + 1])
                answer += connection.recv(1000)
            except TimeoutError:
                continue
            except OSError:
                break
            if answer:
                break
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_an_idle_connection_is_closed_without_an_error(server: Running) -> None:
    with connect(server) as connection:
        connection.sendall(WHOLE)
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"408" not in answer


def test_a_connection_is_reused(server: Running) -> None:
    with connect(server) as connection:
        for _ in range(3):
            connection.sendall(WHOLE)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.1)


def test_pipelined_requests_are_answered_in_order(server: Running) -> None:
    with connect(server) as connection:
        connection.sendall(WHOLE + b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + WHOLE)
        answer = everything(connection)
    assert answer.count(b"HTTP/1.1 200 ") == 3
    assert answer.index(b'"items"') < answer.index(b'"status":"live"') < answer.rindex(b'"items"')


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x02\x00" * 10, b"hello\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n"], ids=range(3)
)
def test_invalid_http_is_400(server: Running, sent: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(sent)
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"message":"the request is not valid HTTP; send HTTP/1.1"' in answer


@pytest.mark.parametrize("length", [b"-5", b"1e3", b"99999999999999999999999999", b"abc"])
def test_an_invalid_content_length_is_400(server: Running, length: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(
            b"POST /v1/recommend HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " + length + b"\r\n\r\n{}"
        )
        assert everything(connection).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("line", [b"x: " + b"y" * 995 + b"\r\n", b"y" * 1000], ids=["many", "one"])
def test_endless_headers_are_431(server: Running, line: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nx: ")
        for _ in range(3 * MAX_HEADER_BYTES // 1000):
            connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        assert everything(connection).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("parts", [1, 2, 50])
def test_the_limit_of_headers_is_exact(server: Running, parts: int) -> None:
    """However the bytes arrive."""
    start = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nx: "
    for extra, status in ((0, b"200"), (1, b"431")):
        head = start + b"y" * (MAX_HEADER_BYTES + extra - len(start) - 4) + b"\r\n\r\n"
        size = -(-len(head) // parts)
        with connect(server) as connection:
            for place in range(0, len(head), size):
                connection.sendall(head[place : place + size])
                time.sleep(0.002)
            assert everything(connection).startswith(b"HTTP/1.1 %s " % status)


OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"


@pytest.mark.parametrize("upgrade", [b"h2c", b"websocket"])
def test_an_upgrade_is_ignored(server: Running, upgrade: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(HEAD + OFFER.replace(b"h2c", upgrade) + b'\r\n{"history": []}')
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(WHOLE)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_the_body_of_an_offered_upgrade_is_read(server: Running, size: int) -> None:
    chunked = HEAD.replace(b"Content-Length: 15", b"Transfer-Encoding: chunked") + OFFER
    sent = HEAD + OFFER + b'\r\n{"history": []}' + chunked + b'\r\nf\r\n{"history": []}\r\n0\r\n\r\n' + WHOLE
    with connect(server) as connection:
        for place in range(0, len(sent), size):
            connection.sendall(sent[place : place + size])
        answer = everything(connection)
    assert answer.count(b"HTTP/1.1 200 ") == 3
    assert answer.count(b"HTTP/1.1") == 3


def test_an_offered_upgrade_with_a_bad_body_is_422(server: Running) -> None:
    with connect(server) as connection:
        connection.sendall(HEAD + OFFER + b'\r\n{"history": 50}')
        assert connection.recv(65536).startswith(b"HTTP/1.1 422 ")


def test_complete_requests_before_an_invalid_one_are_answered(server: Running) -> None:
    for rest in (b"garbage\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * 2 * MAX_HEADER_BYTES + b"\r\n\r\n"):
        with connect(server) as connection:
            connection.sendall(WHOLE + WHOLE + rest)
            answer = everything(connection)
        assert answer.count(b"HTTP/1.1 200 ") == answer.count(b"HTTP/1.1 ") == 2, rest[:20]


@pytest.mark.parametrize("kind", [b"text/plain", b"application/json"])
def test_two_content_types_are_415(server: Running, kind: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(HEAD + b"Content-Type: " + kind + b'\r\n\r\n{"history": []}')
        assert connection.recv(65536).startswith(b"HTTP/1.1 415 ")


def test_a_request_whose_own_body_is_invalid_is_400(server: Running) -> None:
    chunked = HEAD.replace(b"Content-Length: 15", b"Transfer-Encoding: chunked")
    for before in (b"", WHOLE, WHOLE + WHOLE):
        with connect(server) as connection:
            connection.sendall(before + chunked + b"\r\nno number\r\n")
            answer = everything(connection)
        statuses = [int(one[:3]) for one in answer.split(b"HTTP/1.1 ")[1:]]
        assert statuses == [200] * (len(before) // len(WHOLE)) + [400]


def test_a_client_that_does_not_read_is_disconnected(popular: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running(popular, {"read_timeout": 0.3}) as server, connect(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        asked = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        # Responses fill the buffers; then the server stops reading, and later closes the connection.
        connection.settimeout(1)
        with contextlib.suppress(OSError):
            for _ in range(100_000):
                connection.sendall(asked * 50)
        deadline = time.monotonic() + 20
        while server.worker.server_state.connections and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not server.worker.server_state.connections
    assert caplog.text == ""


def test_a_response_is_not_lost_if_the_client_keeps_sending(server: Running) -> None:
    """Closing a socket with unread data would reset the connection."""
    with connect(server) as connection:
        connection.sendall(WHOLE.replace(b"Host", b"Connection: close\r\nHost") + b"x" * 200_000)
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"]}")


def test_a_response_to_a_client_that_was_disconnected_is_dropped(
    popular: Path, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    waiting, go = gate
    body = json.dumps(SLOW).encode()
    with running(popular) as server:
        with connect(server) as connection:
            connection.sendall(HEAD.replace(b"15", str(len(body)).encode()) + b"\r\n" + body)
            assert waiting.wait(10)
        go.set()
        assert server.get("/health/live").status == 200
    assert caplog.text == ""


def test_too_many_connections_are_503(popular: Path) -> None:
    with running(popular, {"connections": 2}) as server:
        with connect(server) as one, connect(server) as two:
            for connection in (one, two):
                connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
            with connect(server) as three:
                answer = everything(three)
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"the server has 2 open connections; try again later" in answer
        deadline = time.monotonic() + 10
        while server.worker.server_state.connections and time.monotonic() < deadline:
            time.sleep(0.02)
        assert server.get("/health/live").status == 200
