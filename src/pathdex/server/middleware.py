"""The layers around the app: request metrics, access log, authentication, allowed hosts."""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable
from typing import Any, TextIO

from pathdex.errors import Problem
from pathdex.server.asgi import MODEL, ROUTE, ASGIApp, Receive, Scope, Send, send_error
from pathdex.server.errors import SERVER, RequestError
from pathdex.server.metrics import OTHER, ServerMetrics

CLIENT_CLOSED = 499
"""The status that is recorded if the client disconnects before the response, as nginx does."""


_HOST = re.compile(rb"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
"""The header Host: a name, an IPv4 address or an IPv6 one in brackets, and maybe a port."""
_KNOWN_HOSTS = 100
"""Values of the header Host that are remembered as allowed."""


class RequestObserver(ABC):
    """A layer that measures each request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    @abstractmethod
    def on_end(self, scope: Scope, status: int, nanoseconds: int) -> None: ...

    def on_start(self) -> None:  # noqa: B027
        pass

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, started = CLIENT_CLOSED, time.perf_counter_ns()

        # A plain function that returns the awaitable: a coroutine per message would cost more.
        def observe(message: dict[str, Any]) -> Awaitable[None]:
            nonlocal status
            status = message.get("status", status)
            return send(message)

        self.on_start()
        try:
            await self.app(scope, receive, observe)
        finally:
            self.on_end(scope, status, time.perf_counter_ns() - started)


class RequestMetrics(RequestObserver):
    """Counts requests, durations and requests in flight, by the route that the app matched."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        super().__init__(app)
        self._metrics = metrics

    def on_start(self) -> None:
        self._metrics.add("pathdex_http_requests_in_flight")

    def on_end(self, scope: Scope, status: int, nanoseconds: int) -> None:
        self._metrics.add("pathdex_http_requests_in_flight", -1)
        self._metrics.observe(scope.get(ROUTE, OTHER), status, nanoseconds)


class AccessLog(RequestObserver):
    """Writes each request as a line of JSON: time, client, method, path, status, milliseconds, model version."""

    def __init__(self, app: ASGIApp, stream: TextIO | None = None) -> None:
        super().__init__(app)
        self._stream = stream

    def on_end(self, scope: Scope, status: int, nanoseconds: int) -> None:
        client = scope.get("client")
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "client": client and client[0],
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "ms": round(nanoseconds / 1e6, 3),
            "model": scope.get(MODEL),
        }
        (self._stream or sys.stderr).write(json.dumps(line) + "\n")


class Authentication:
    """Answers 401 unless a request has the token or its path is in `public`; a path there that ends in / stands for all
    that begin with it."""

    def __init__(self, app: ASGIApp, token: str, public: Iterable[str]) -> None:
        self.app, self._expected, self._public = app, token.encode(), frozenset(public)
        self._folders = tuple(one for one in self._public if one.endswith("/") and len(one) > 1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_public(scope["path"]):
            given = b", ".join(value for name, value in scope["headers"] if name == b"authorization")
            scheme, _, token = given.partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._expected):
                rule = "the token is wrong" if given else "a token is required"
                problem = Problem(rule, remedy="send it as: Authorization: Bearer TOKEN")
                error = RequestError(401, problem, type=SERVER, headers=((b"www-authenticate", b"Bearer"),))
                await send_error(send, error, None)
                return
        await self.app(scope, receive, send)

    def _is_public(self, path: str) -> bool:
        return path in self._public or path.startswith(self._folders)


class HostCheck:
    """Answers 421 unless the header Host has an allowed name, and 400 without the header.

    A web page whose name resolves to this machine (DNS rebinding) can send requests that look local to a browser; they
    carry the name of the page. IP addresses cannot be forged in this way and are always allowed.
    """

    def __init__(self, app: ASGIApp, allowed: Iterable[str], public: Iterable[str]) -> None:
        """`allowed` are names in lower case; `*.example.org` allows all names under example.org."""
        self.app, self._allowed, self._public = app, tuple(allowed), frozenset(public)
        self._known: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self._public:
            given = [value for name, value in scope["headers"] if name == b"host"]
            if len(given) != 1 and not (not given and scope["http_version"] == "1.0"):
                problem = Problem("exactly one header Host is required", "host", f"{len(given)} headers", "send one")
                await send_error(send, RequestError(400, problem, type=SERVER), None)
                return
            if given and given[0] not in self._known:
                if not self._is_allowed(given[0]):
                    remedy = "use another name of this server, or start it with --allowed-hosts"
                    problem = Problem("is no allowed host", "host", given[0].decode("latin-1"), remedy)
                    await send_error(send, RequestError(421, problem, type=SERVER), None)
                    return
                if len(self._known) < _KNOWN_HOSTS:
                    self._known.add(given[0])
        await self.app(scope, receive, send)

    def _is_allowed(self, given: bytes) -> bool:
        found = _HOST.fullmatch(given)
        if found is None or int(found["port"] or 0) >= 2**16:
            return False
        host = found["host"].decode().strip("[]").lower().removesuffix(".")
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return any(host == one or (one.startswith("*.") and host.endswith(one[1:])) for one in self._allowed)
        return True
