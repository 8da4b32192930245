"""The client's HTTP connections: typed calls of routes over a urllib3 pool."""

from __future__ import annotations

import json
import numbers
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import urllib3

from pathdex.errors import ConfigError, PathdexError, Problem, QueryError, ServerError
from pathdex.server.errors import QUERY
from pathdex.server.parsing import make_decoder
from pathdex.server.route import Route
from pathdex.server.schemas import ErrorResponse

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")

MAX_IDLE = 16
"""Connections kept open for reuse."""
_ERRORS = make_decoder(ErrorResponse)


class ConnectionPool:
    """Calls the routes of one server. Thread-safe."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError([Problem("must be an HTTP URL", "url", url, "write it as http://127.0.0.1:8000")])
        if not timeout > 0:
            raise ConfigError([Problem("must be greater than 0 seconds", "timeout", timeout)])
        self.url, self._prefix, self._timeout = url.rstrip("/"), parts.path.rstrip("/"), timeout
        self._headers = {"Accept": "application/json"}
        if token is not None:
            token = token.strip()
            if not (token and token.isascii() and token.isprintable()):
                # Without the value: a token does not belong in a log.
                raise ConfigError(["the token must be printable ASCII and not empty"])
            self._headers["Authorization"] = f"Bearer {token}"
        self._pool = urllib3.connection_from_url(
            f"{parts.scheme}://{parts.netloc}", maxsize=MAX_IDLE, timeout=timeout, retries=False
        )

    def call(self, route: Route[RequestT, ResponseT], request: RequestT) -> ResponseT:
        """Send a request and decode the response. Raises what the server reports: `QueryError` or `ServerError`."""
        parameter = None if route.parameter is None else str(request)
        body = None if route.request is None else encode_request(request)
        response = self._send(route, route.url(parameter), body)
        if 200 <= response.status < 300:
            try:
                return route.parse_response(response.data)
            except ValueError:
                pass
        raise _error(response.status, response.data, self.url + route.url(parameter))

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def _send(self, route: Route[Any, Any], path: str, body: bytes | None) -> urllib3.BaseHTTPResponse:
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        # A server may close an idle connection at the moment it is reused. Events are not repeated: they could be
        # stored twice.
        attempts = 2 if route.safe_to_repeat else 1
        while True:
            attempts -= 1
            try:
                return self._pool.urlopen(route.method, self._prefix + path, body, headers, redirect=False)
            except urllib3.exceptions.NewConnectionError as error:  # Counts as a timeout too.
                raise self._unreachable(error) from error
            except urllib3.exceptions.TimeoutError as error:
                rule = f"{self.url} did not respond within {self._timeout:g} s; pass a longer timeout"
                raise ServerError(rule) from error
            except urllib3.exceptions.ClosedPoolError as error:
                raise ServerError("the client is closed; create another one") from error
            except urllib3.exceptions.HTTPError as error:
                if not (attempts and isinstance(error, urllib3.exceptions.ProtocolError)):
                    raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> ServerError:
        cause: Any = error.__cause__ or error.args[-1]
        reason = getattr(cause, "strerror", None) or cause
        return ServerError(f"cannot connect to {self.url} ({reason}); check the URL and that the server is running")


def encode_request(request: Any) -> bytes:
    """A request as JSON, without the fields that are None. `QueryError` for values that JSON cannot hold."""
    try:
        return json.dumps(request, default=_json_value, allow_nan=False).encode()
    except ValueError as error:
        if isinstance(error, QueryError):
            raise
        raise QueryError(
            f"the request is not valid JSON ({error})", remedy="pass strings and finite numbers"
        ) from error


def _json_value(value: Any) -> Any:
    """Structs, sets, and the numbers and arrays of numpy."""
    if isinstance(value, msgspec.Struct):
        return {name: one for name in value.__struct_fields__ if (one := getattr(value, name)) is not None}
    if isinstance(value, numbers.Integral):
        return int(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return list(value)
    kind = type(value).__name__
    raise QueryError(f"{value!r} has the type {kind}, which JSON cannot hold", remedy="pass strings or numbers")


def _error(status: int, body: bytes, url: str) -> PathdexError:
    """The exception that an error response describes."""
    try:
        error = _ERRORS.decode(body).error
    except ValueError:
        return ServerError(f"{url} returned status {status} without an error; is it a Pathdex server?", status)
    if error.type == QUERY:
        return QueryError(error.rule or error.message, argument=error.field, value=error.value, remedy=error.remedy)
    return ServerError(error.message, status)
