"""The ASGI application: match the route, parse the request, call the handler, send the response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from pathdex.errors import PathdexError, Problem
from pathdex.server.asgi import (
    MODEL,
    OVERLOADED,
    ROUTE,
    Receive,
    Scope,
    Send,
    read_body,
    send_error,
    send_response,
    unless_known,
)
from pathdex.server.errors import SERVER, DisconnectedError, RequestError, from_library, unavailable
from pathdex.server.route import RouteTable
from pathdex.server.worker_context import WorkerContext

log = logging.getLogger("pathdex.server")

Hook = Callable[[], Awaitable[None]]


class ModelSource(Protocol):
    """Holds the current model: a `ModelManager`, or a `RouterManager`."""

    @property
    def current(self) -> Any: ...


class App:
    """Answers HTTP requests with the current model. `startup` and `shutdown` run as ASGI lifespan events."""

    def __init__(
        self, context: WorkerContext, models: ModelSource, routes: RouteTable, *, startup: Hook, shutdown: Hook
    ) -> None:
        self.context, self.models, self.routes = context, models, routes
        self._startup, self._shutdown = startup, shutdown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        # A request uses the model that was current when it arrived, even if a new one is loaded meanwhile.
        served = self.models.current
        version = scope[MODEL] = None if served is None else served.version
        context = self.context
        limits = context.limits
        try:
            route, parameter = self.routes.match(scope["path"], scope["raw_path"], scope["method"])
            scope[ROUTE] = route.path
            if not route.operational and scope.get(OVERLOADED):
                raise unavailable(f"the server is busy with {limits.queue} requests", "try again later", 429)
            body = b"" if route.request is None else await read_body(scope, receive, route.max_bytes(limits))
            if served is None and not route.operational:
                raise unavailable("the model is still loading", "wait until /health/ready returns 200")
            request: Any = parameter
            if route.request is not None:
                request = route.parse(body, limits)
            elif route.query is not None:
                request = route.parse_query(scope["query_string"], parameter)
            response = await route.handler(context, served, request)
        except RequestError as error:
            await send_error(send, error, version)
        except PathdexError as error:
            await send_error(send, from_library(error), version)
        except asyncio.TimeoutError:
            rule = f"no response within {limits.timeout:g} s"
            await send_error(send, unavailable(rule, "request less, or raise the server's limit", 504), version)
        except asyncio.CancelledError:
            rule = f"the server stopped before the response was ready, after {limits.grace:g} s"
            await send_error(send, unavailable(rule, "try again"), version)
        except DisconnectedError:
            return
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            problem = Problem("internal error", remedy="see the server log")
            await send_error(send, RequestError(500, problem, type=SERVER), version)
        else:
            await send_response(send, unless_known(scope, response), route.content_type, response.version or version)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        for phase, hook in (("startup", self._startup), ("shutdown", self._shutdown)):
            await receive()
            await hook()
            await send({"type": f"lifespan.{phase}.complete"})
