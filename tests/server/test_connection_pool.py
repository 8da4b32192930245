"""The client's connections: reuse, retries, timeouts, and errors that say what to do."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathdex.errors import ConfigError, QueryError, ServerError
from pathdex.server.connection_pool import ConnectionPool, encode_request
from pathdex.server.routes import events, model, recommend
from pathdex.server.schemas import EventsRequest, QueryRequest, RecommendRequest
from tests.server.conftest import running

OK = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s"
QUERY = RecommendRequest(history=[])


@contextmanager
def scripted_server(*responses: bytes | None) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers one request after the other, each on a new connection; None closes without an answer."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for response in responses:
                connection, _ = listening.accept()
                with connection:
                    received.append(connection.recv(65536))
                    if response is not None:
                        connection.sendall(response)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", received
        thread.join(20)
        assert not thread.is_alive()


def pool(url: str, **options: Any) -> ConnectionPool:
    return ConnectionPool(url, options.pop("token", None), options.pop("timeout", 10.0))


def response(body: Any) -> bytes:
    text = json.dumps(body).encode()
    return OK % (len(text), text)


def test_connections_are_reused(popular: Path) -> None:
    with running(popular) as server:
        connections = pool(server.url)
        for _ in range(3):
            connections.call(recommend, QUERY)
        assert len(server.worker.server_state.connections) == 1
        connections.close()


def test_a_query_is_repeated_once_if_the_connection_breaks() -> None:
    with scripted_server(None, response({"model": "m", "items": []})) as (url, received):
        assert pool(url).call(recommend, QUERY).items == []
    assert len(received) == 2
    with scripted_server(None, None) as (url, received), pytest.raises(ServerError, match="cannot connect"):
        pool(url).call(recommend, QUERY)
    assert len(received) == 2


def test_events_are_never_sent_twice() -> None:
    with scripted_server(None) as (url, received), pytest.raises(ServerError, match="cannot connect"):
        pool(url).call(events, EventsRequest(user="ada", items=[1]))
    assert len(received) == 1


def test_an_unreachable_server() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ServerError) as caught:
            pool(url).call(model, None)
    message = f"cannot connect to {url} (Connection refused); check the URL and that the server is running"
    assert (str(caught.value), caught.value.status) == (message, None)


def test_a_server_that_does_not_respond() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connections = pool(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1)
        with pytest.raises(ServerError, match=r"did not respond within 0.1 s; pass a longer timeout"):
            connections.call(recommend, QUERY)
        connections.close()


@pytest.mark.parametrize(
    "answer", [OK % (5, b"hello"), OK % (2, b"{}"), b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"]
)
def test_a_server_that_is_not_pathdex(answer: bytes) -> None:
    with (
        scripted_server(answer) as (url, _),
        pytest.raises(ServerError, match=r"/v1/model returned status \d+ without an error; is it a Pathdex server\?"),
    ):
        pool(url).call(model, None)


def test_a_path_before_the_routes_is_kept() -> None:
    with scripted_server(response({"model": "m", "items": []})) as (url, received):
        pool(f"{url}/shop/", token="secret").call(recommend, QUERY)
    assert received[0].startswith(b"POST /shop/v1/recommend HTTP/1.1\r\n")
    assert b"Authorization: Bearer secret\r\n" in received[0]
    assert b"Content-Type: application/json\r\n" in received[0]


def test_a_closed_pool() -> None:
    connections = pool("http://127.0.0.1:1")
    connections.close()
    with pytest.raises(ServerError, match="the client is closed; create another one"):
        connections.call(model, None)


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host", "http://", ""])
def test_an_invalid_url(url: str) -> None:
    with pytest.raises(ConfigError, match=r"url=.*: must be an HTTP URL; write it as http://127.0.0.1:8000"):
        pool(url)


def test_an_invalid_timeout() -> None:
    with pytest.raises(ConfigError, match=r"timeout=0: must be greater than 0 seconds"):
        pool("http://localhost", timeout=0)


def test_requests_are_encoded_without_empty_fields() -> None:
    query = QueryRequest(history=np.array([1, 2]), n=np.int64(3), deny={4})  # type: ignore[arg-type]
    assert json.loads(encode_request(RecommendRequest(queries=[query])))["queries"] == [
        {"history": [1, 2], "n": 3, "exclude_seen": True, "deny": [4], "explain": False}
    ]


def test_values_that_json_cannot_hold() -> None:
    with pytest.raises(QueryError, match=r"the request is not valid JSON \(.*\); pass strings and finite numbers"):
        encode_request(QueryRequest(where={"price": float("nan")}))
    with pytest.raises(QueryError, match="has the type object, which JSON cannot hold; pass strings or numbers"):
        encode_request(QueryRequest(where={"price": object()}))


def test_a_token_is_stripped_and_never_shown() -> None:
    pool = ConnectionPool("http://127.0.0.1:1", " s3cret\n", 1.0)
    assert pool._headers["Authorization"] == "Bearer s3cret"
    with pytest.raises(ConfigError, match="the token must be printable ASCII and not empty") as caught:
        ConnectionPool("http://127.0.0.1:1", "s3\ncret", 1.0)
    assert "cret" not in str(caught.value)
