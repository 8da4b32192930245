"""JSON over HTTP with connections that are used again; nothing beyond the standard library."""

from __future__ import annotations

import http.client
import json
import numbers
import select
import socket
import threading
from typing import Any
from urllib.parse import quote, urlsplit

from pathdex.errors import ConfigError, PathdexError, QueryError, ServerError

KEPT = 16
"""Idle connections that are kept."""


class Transport:
    """Sends requests to one server. Any number of threads may share it."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError([f"url={url!r}: must be like http://127.0.0.1:8000"])
        if not timeout > 0:
            raise ConfigError([f"timeout={timeout!r}: must be a number of seconds greater than 0"])
        self.url = url.rstrip("/")
        self._secure, self._place, self._base = parts.scheme == "https", parts.netloc, parts.path.rstrip("/")
        self._timeout = timeout
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def get(self, *path: str) -> dict[str, Any]:
        return self._ask("GET", "/".join(["", *(quote(part, safe="") for part in path)]), None, repeat=True)

    def post(self, path: str, body: dict[str, Any], *, repeat: bool = True) -> dict[str, Any]:
        """`repeat` says whether the request may be sent twice where the connection breaks and nobody knows whether the
        server has seen it."""
        try:
            text = json.dumps(body, default=_plain, allow_nan=False).encode()
        except QueryError:
            raise
        except ValueError as error:
            raise QueryError(
                f"the request cannot be written as JSON ({error}); pass text and finite numbers"
            ) from error
        return self._ask("POST", path, text, repeat=repeat)

    def close(self) -> None:
        """Close the idle connections; the next request opens a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _ask(self, method: str, path: str, body: bytes | None, *, repeat: bool) -> dict[str, Any]:
        connection, fresh = self._take()
        while True:
            try:
                status, text = self._exchange(connection, method, path, body)
                break
            except (http.client.HTTPException, OSError) as error:
                connection.close()
                # A server may close an idle connection in the very moment in which it is used.
                if fresh or not repeat or isinstance(error, TimeoutError | socket.timeout):
                    raise self._unreachable(error) from error
                connection, fresh = self._open(), True
        if connection.sock is not None:
            with self._lock:
                if len(self._idle) < KEPT:
                    self._idle.append(connection)
                    connection = None  # type: ignore[assignment]
        if connection is not None:
            connection.close()
        return self._read(status, text, path)

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None
    ) -> tuple[int, bytes]:
        try:
            connection.request(method, self._base + path, body, self._headers)
        except (BrokenPipeError, ConnectionResetError):
            # A server that refuses a large body may have answered before it read all of it.
            if connection.sock is None or body is None:
                raise
        answer = connection.getresponse()
        return answer.status, answer.read()

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it is new."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._open(), True
            if connection.sock is not None and not _dropped(connection.sock):
                return connection, False
            connection.close()

    def _open(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._place, timeout=self._timeout)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise self._unreachable(error) from error
        # Head and body are two writes; without this the second waits for the server to acknowledge the first.
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _read(self, status: int, text: bytes, path: str) -> dict[str, Any]:
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if status == 200 and isinstance(answer, dict):
            return answer
        raise _refusal(status, answer, f"{self.url}{path}")

    def _unreachable(self, error: Exception) -> ServerError:
        if isinstance(error, TimeoutError | socket.timeout):
            return ServerError(f"{self.url} did not answer within {self._timeout:g} s; pass a longer timeout")
        reason = str(error) or type(error).__name__
        return ServerError(f"{self.url} cannot be reached ({reason}); check the address and that the server runs")


def _refusal(status: int, answer: Any, place: str) -> PathdexError:
    """The exception that the body of a refusal asks for."""
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return ServerError(f"{place} answered with status {status} and no reason; is it a Pathdex server?", status)
    if error.get("type") == "QueryError":
        return QueryError(error["message"])
    return ServerError(error["message"], status)


def _dropped(sock: socket.socket) -> bool:
    """Whether the other side has closed a connection on which nothing is due."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])


def _plain(value: Any) -> Any:
    """What JSON has no word for: numpy's numbers and arrays, tuples of ids are known to it already."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return list(value)
    raise QueryError(f"{value!r}: is a {type(value).__name__}, which JSON cannot hold; pass text or numbers")
