"""The layers around the app: request metrics, access log, authentication."""

from __future__ import annotations

import hmac
import json
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
    """Answers 401 unless a request has the token or its path is in `public`."""

    def __init__(self, app: ASGIApp, token: str, public: Iterable[str]) -> None:
        self.app, self._expected, self._public = app, f"Bearer {token}".encode(), frozenset(public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self._public:
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                rule = "the token is wrong" if given else "a token is required"
                problem = Problem(rule, remedy="send it as: Authorization: Bearer TOKEN")
                error = RequestError(401, problem, type=SERVER, headers=((b"www-authenticate", b"Bearer"),))
                await send_error(send, error, None)
                return
        await self.app(scope, receive, send)
