"""Request counts, durations and the number of requests in flight."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any

from pathdex.server.asgi import ROUTE, ASGIApp, Receive, Scope, Send
from pathdex.server.metrics import OTHER, ServerMetrics

CLIENT_CLOSED = 499
"""The status that is recorded if the client disconnects before the response, as nginx does."""


class RequestMetrics:
    """Records each request under the route that the app matched."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self.app, self._metrics = app, metrics

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

        metrics = self._metrics
        metrics.add("pathdex_http_requests_in_flight")
        try:
            await self.app(scope, receive, observe)
        finally:
            metrics.add("pathdex_http_requests_in_flight", -1)
            metrics.observe(scope.get(ROUTE, OTHER), status, time.perf_counter_ns() - started)
