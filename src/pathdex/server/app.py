"""The ASGI application: finds the route, reads the body, answers, and counts."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable

from pathdex.errors import PathdexError
from pathdex.server.endpoints import Call, Endpoints
from pathdex.server.errors import SERVER, DisconnectedError, RequestError, busy, of_library
from pathdex.server.http import Receive, Reply, Scope, Send, header, read_body, send_reply
from pathdex.server.metrics import Metrics
from pathdex.server.model_manager import Live
from pathdex.server.options import ServerOptions
from pathdex.server.routes import OTHER, Route, find
from pathdex.server.stores import UserStore

log = logging.getLogger("pathdex.server")

FULL = "pathdex.full"
"""Set in the scope of a request that came when all places were taken."""
CLIENT_GONE = 499
"""Counted where the client went away before its answer, as nginx does."""


class App:
    """Answers HTTP with the model that is live. `start` and `stop` frame its life, as ASGI's lifespan has it."""

    def __init__(
        self,
        options: ServerOptions,
        live: Live,
        metrics: Metrics,
        store: UserStore | None = None,
        *,
        start: Callable[[], Awaitable[None]] | None = None,
        stop: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.options, self.live, self.metrics = options, live, metrics
        self.endpoints = Endpoints(options, metrics, store)
        self._start, self._stop = start, stop
        self._token = None if options.token is None else f"Bearer {options.token}".encode()

    def leave(self) -> None:
        """From now on the server is not ready; it still answers."""
        self.endpoints.leaving = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live_and_die(receive, send)
            return
        started = time.perf_counter_ns()
        call = Call("", b"", self.live.current)
        name, reply = OTHER, None
        self.metrics.add("pathdex_requests_in_flight")
        try:
            try:
                route, argument = find(scope["path"], scope["raw_path"], scope["method"])
                name = route.path
                self._admit(scope, route)
                body = await read_body(scope, receive, self.options.limits.max_bytes) if route.method == "POST" else b""
                call = Call(argument, body, self.live.current)
                reply = await self.endpoints.answer(route.operation, call)
            except RequestError as problem:
                reply = refusal(problem, call.version)
            except PathdexError as error:
                reply = refusal(of_library(error), call.version)
            except asyncio.TimeoutError:
                seconds = self.options.limits.timeout
                message = f"no answer within {seconds:g} s; ask for less, or have the server's limit raised"
                reply = refusal(busy(message, 504), call.version)
            except Exception as error:
                if isinstance(error, DisconnectedError):
                    raise
                log.exception("%s %s failed", scope["method"], scope["path"])
                reply = refusal(RequestError(500, "the server failed; its log says why", kind=SERVER), call.version)
            await send_reply(send, reply, call.version)
        except DisconnectedError:
            pass
        finally:
            self.metrics.add("pathdex_requests_in_flight", -1)
            spent = time.perf_counter_ns() - started
            status = CLIENT_GONE if reply is None else reply.status
            self.metrics.observe(name, status, spent)
            if self.options.access_log:
                self._log_access(scope, status, spent, call.version)

    async def close(self) -> None:
        await self.endpoints.close()

    async def _live_and_die(self, receive: Receive, send: Send) -> None:
        for phase, work in (("startup", self._start), ("shutdown", self._stop)):
            await receive()
            if work is not None:
                await work()
            await send({"type": f"lifespan.{phase}.complete"})

    def _admit(self, scope: Scope, route: Route) -> None:
        """Raise for a request that is not let in."""
        if (
            self._token is not None
            and not route.free
            and not (route.path == "/metrics" and self.options.public_metrics)
        ):
            given = header(scope, b"authorization") or b""
            if not hmac.compare_digest(given, self._token):
                message = "this server needs a token; send it as: Authorization: Bearer TOKEN"
                raise RequestError(401, message, kind=SERVER, headers=((b"www-authenticate", b"Bearer"),))
        if route.queues and scope.get(FULL):
            raise busy(f"the server has {self.options.limits.queue} requests in hand already; try again in a moment")

    def _log_access(self, scope: Scope, status: int, spent: int, version: str | None) -> None:
        client = scope.get("client")
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "client": client and client[0],
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "ms": round(spent / 1e6, 3),
            "model": version,
        }
        sys.stderr.write(json.dumps(line) + "\n")


def refusal(problem: RequestError, version: str | None) -> Reply:
    """A problem as an answer. The connection ends where more of a body might come than anybody wants to read."""
    return Reply(problem.body(version), problem.status, headers=problem.headers, close=problem.status == 413)
