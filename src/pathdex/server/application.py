"""The application that the options of a server describe: model, user store, stream, routes and layers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pathdex.errors import PathdexError, ServerError
from pathdex.server.app import App
from pathdex.server.asgi import ASGIApp
from pathdex.server.event_feed import EventFeed
from pathdex.server.explorers import Explorers
from pathdex.server.last_good import LastGood
from pathdex.server.metrics import ServerMetrics
from pathdex.server.middleware import AccessLog, Authentication, HostCheck, RequestMetrics
from pathdex.server.model_loader import ModelLoader, ServedModel
from pathdex.server.model_manager import ModelManager
from pathdex.server.openapi import describe
from pathdex.server.options import ServerOptions
from pathdex.server.route import RouteTable
from pathdex.server.routes import ROUTES
from pathdex.server.shard_client import ShardClient
from pathdex.server.stores import open_store
from pathdex.server.worker_context import WorkerContext

if TYPE_CHECKING:
    from pathdex.server.routed_model import RouterManager

log = logging.getLogger("pathdex.server")


def add_middleware(app: ASGIApp, options: ServerOptions, metrics: ServerMetrics) -> ASGIApp:
    """The app with the layers that the options ask for, the outermost added last."""
    hosts = options.hosts
    if hosts is not None:
        app = HostCheck(app, hosts, {route.path for route in ROUTES if route.path.startswith("/health/")})
    if options.token is not None:
        public = {route.path if route.parameter is None else route.prefix for route in ROUTES if route.public}
        app = Authentication(app, options.token, public | ({"/metrics"} if options.public_metrics else set()))
    if options.access_log:
        app = AccessLog(app)
    return RequestMetrics(app, metrics)


class Application:
    """The ASGI application `asgi`, which begins to load the model when it starts up."""

    def __init__(
        self,
        options: ServerOptions,
        metrics: ServerMetrics,
        *,
        last_good: LastGood | None = None,
        waits: bool = False,
        on_ready: Callable[[str], object] = lambda _: None,
        on_failure: Callable[[], object] = lambda: None,
        on_swap: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`waits` says whether the start ends only when the model is loaded. If that fails, `failure` says why."""
        self.options, self.metrics, self._waits = options, metrics, waits
        self._on_ready, self._on_failure, self._on_swap = on_ready, on_failure, on_swap
        self.models, routes = _models_of(options, metrics, last_good, self._swapped)
        store = None if options.user_store is None else open_store(options.user_store, options.limits.max_history)
        document = msgspec.json.encode(
            describe(routes, options.limits, token=options.token is not None, hosts=options.hosts is not None)
        )
        feed = None if options.events is None else EventFeed(options.events, metrics, options.limits.timeout)
        explorers = Explorers(options.model, options.compare)
        self.context = WorkerContext(options.limits, metrics, store, document, feed, explorers)
        self.models.kept = self.context.kept
        app = App(self.context, self.models, routes, startup=self._on_startup, shutdown=self._on_shutdown)
        self.asgi = add_middleware(app, options, metrics)
        self.failure: Exception | None = None
        """Why the first model could not be loaded."""
        self._loading: asyncio.Task[None] | None = None

    async def _on_startup(self) -> None:
        self.metrics.add("pathdex_worker_starts_total")
        self._loading = asyncio.create_task(self._load())
        if self._waits:
            await self._loading

    async def _load(self) -> None:
        try:
            served = await self.models.start()
        except Exception as error:
            self.failure = error
            if not isinstance(error, PathdexError):
                source = ", ".join(self.options.shards) or self.options.model
                log.exception("loading %s failed", source)
                name = type(error).__name__
                self.failure = ServerError(f"{source} cannot be loaded ({name}); see the log")
            self._on_failure()
            return
        self.metrics.set("pathdex_workers_ready", 1)
        self._on_ready(served.version)
        if self.options.explorer and isinstance(served, ServedModel):
            # What it cannot explore, it says to the page.
            with contextlib.suppress(PathdexError):
                await asyncio.to_thread(self.context.explorers.of, served)

    def _swapped(self, version: str) -> None:
        served = self.models.current
        if isinstance(served, ServedModel):
            self.context.explorers.on_swap(served)
        self._on_swap(version)

    async def _on_shutdown(self) -> None:
        self.metrics.set("pathdex_workers_ready", 0)
        if self._loading is not None:
            self._loading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loading
        await self.models.close()
        await self.context.close()


def _models_of(
    options: ServerOptions, metrics: ServerMetrics, last_good: LastGood | None, on_swap: Callable[[str], object]
) -> tuple[ModelManager | RouterManager, RouteTable]:
    """What holds the model, and the routes that answer with it."""
    if options.shards:
        from pathdex.server.routed_model import RouterManager
        from pathdex.server.router_routes import router_routes

        client = ShardClient(options.router, options.token, metrics)
        router = RouterManager(client, options.shards, options.watch, metrics, partial=options.partial, on_swap=on_swap)
        return router, router_routes(router)
    loader = ModelLoader.from_options(options)
    return ModelManager(loader, metrics, options.watch, last_good=last_good, on_swap=on_swap), ROUTES


def resident_bytes() -> int:
    """The resident memory of this process; 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
