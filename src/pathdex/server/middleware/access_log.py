"""An access log: one JSON object per request and line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable
from typing import Any, TextIO

from pathdex.server.asgi import MODEL, ASGIApp, Receive, Scope, Send
from pathdex.server.middleware.request_metrics import CLIENT_CLOSED


class AccessLog:
    """Writes time, client, method, path, status, milliseconds and model version of each request."""

    def __init__(self, app: ASGIApp, stream: TextIO | None = None) -> None:
        self.app, self._stream = app, stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, started = CLIENT_CLOSED, time.perf_counter()

        def observe(message: dict[str, Any]) -> Awaitable[None]:
            nonlocal status
            status = message.get("status", status)
            return send(message)

        try:
            await self.app(scope, receive, observe)
        finally:
            self._write(scope, status, time.perf_counter() - started)

    def _write(self, scope: Scope, status: int, seconds: float) -> None:
        client = scope.get("client")
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "client": client and client[0],
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "ms": round(1000 * seconds, 3),
            "model": scope.get(MODEL),
        }
        (self._stream or sys.stderr).write(json.dumps(line) + "\n")
