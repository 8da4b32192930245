"""The server on a Ray cluster: Ray Serve places the replicas and receives the requests, the application is the same.

    from pathdex.server.options import ServerOptions
    from pathdex.server.ray_serve import ray_application

    serve.run(ray_application(ServerOptions(model=Path("/models/shop")), replicas=2), route_prefix="/")

or, without Python:

    serve run pathdex.server.ray_serve:build model=/models/shop replicas=2
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

import msgspec

from pathdex.errors import ConfigError, MissingExtraError, Problem, did_you_mean
from pathdex.server.application import Application, resident_bytes
from pathdex.server.asgi import OVERLOADED, Receive, Scope, Send
from pathdex.server.metrics import ServerMetrics
from pathdex.server.model_loader import ModelLoader
from pathdex.server.options import ServerOptions
from pathdex.server.stores import REDIS_SCHEMES
from pathdex.server.worker import log_to_stderr

MEMORY_SECONDS = 1.0
"""Seconds between two looks at the memory of a replica, for its metrics."""
ANY_ADDRESS = "0.0.0.0"
NOT_HERE = ("host", "port", "workers")
"""Options that Ray Serve has in its own way."""


def ray_application(options: ServerOptions, *, replicas: int = 1, **deployment: Any) -> Any:
    """A Ray Serve application with the routes, answers and errors of `pathdex serve`.

    `replicas` processes each have the model, or are a router if the options name shards; further options are those of
    `ray.serve.deployment`, such as `ray_actor_options`. Every node that runs replicas must have the model at the same
    absolute path. Address and port are those of Ray Serve. `ConfigError` if the options do not fit a cluster;
    `MissingExtraError` without Ray.
    """
    options = cluster_options(options, replicas)
    if not options.shards:
        ModelLoader.from_options(options).check()
    serve = _ray_serve()
    limits = options.limits
    settings = {
        "name": "pathdex",
        "num_replicas": replicas,
        # The application itself answers with status 429 when its queue is full.
        "max_ongoing_requests": 2 * limits.queue,
        "graceful_shutdown_timeout_s": limits.grace,
        **deployment,
    }
    return serve.deployment(**settings)(serve.ingress(ReplicaApp(options))(_Replica)).bind()


def build(arguments: Mapping[str, Any]) -> Any:
    """What `serve run` and the config files of Ray Serve call: the fields of `ServerOptions`, and `replicas`."""
    known = {field.name: field for field in dataclasses.fields(ServerOptions) if field.name not in NOT_HERE}
    for name in arguments:
        if name not in known and name != "replicas":
            rule = f"is not an option of a server on Ray{did_you_mean(name, [*known, 'replicas'])}"
            raise ConfigError([Problem(rule, name, arguments[name], "see pathdex.server.options.ServerOptions")])
    given = dict(arguments)
    try:
        replicas = msgspec.convert(given.pop("replicas", 1), int, strict=False)
        options = msgspec.convert(given, ServerOptions, strict=False, dec_hook=lambda kind, value: kind(value))
    except msgspec.ValidationError as error:
        problem = Problem(f"do not fit ({error})", "arguments", remedy="see pathdex.server.options.ServerOptions")
        raise ConfigError([problem]) from None
    return ray_application(options, replicas=replicas)


def cluster_options(options: ServerOptions, replicas: int) -> ServerOptions:
    """The options for every replica, wherever it runs; `ConfigError` if they only work on one machine."""
    problems: list[Problem | str] = []
    if replicas < 1:
        problems.append(Problem("must be at least 1", "replicas", replicas))
    if options.workers != 1:
        problems.append(Problem("must be 1 on Ray", "workers", options.workers, "use replicas"))
    if options.user_store is not None and not options.user_store.startswith(REDIS_SCHEMES):
        rule = "must be a Redis URL on Ray, whose replicas share it"
        problems.append(Problem(rule, "user_store", options.user_store, "write it as redis://HOST:6379/0"))
    if options.events is not None and "://" not in options.events:
        rule = "must be the URL of a broker on Ray, whose replicas share it"
        problems.append(Problem(rule, "events", options.events, "use a broker that the trainer reads"))
    if problems:
        raise ConfigError(problems)
    return dataclasses.replace(
        options,
        model=options.model if options.shards else options.model.absolute(),
        catalogue=None if options.catalogue is None else options.catalogue.absolute(),
        compare=None if options.compare is None else options.compare.absolute(),
        # Requests come from the proxies of Ray Serve, under whatever names these have.
        host=ANY_ADDRESS,
    )


class ReplicaApp:
    """The application of a replica, made where the replica runs: until it starts up, there are only its options."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self._application: Application | None = None
        self._in_flight = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return ReplicaApp, (self.options,)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run(scope, receive, send)
        else:
            assert self._application is not None
            if self._in_flight >= self.options.limits.queue:
                scope[OVERLOADED] = True
            self._in_flight += 1
            try:
                await self._application.asgi(scope, receive, send)
            finally:
                self._in_flight -= 1

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The start, which fails if the model cannot be loaded, and the stop."""
        log_to_stderr()
        metrics = ServerMetrics(shards=len(self.options.shards))
        application = self._application = Application(self.options, metrics, waits=True)

        async def send_or_fail(message: dict[str, Any]) -> None:
            if message["type"] == "lifespan.startup.complete" and application.failure is not None:
                message = {"type": "lifespan.startup.failed", "message": str(application.failure)}
            await send(message)

        memory = asyncio.create_task(_watch_memory(metrics))
        try:
            await application.asgi(scope, receive, send_or_fail)
        finally:
            memory.cancel()


class _Replica:
    """What Ray Serve makes an ingress of."""


async def _watch_memory(metrics: ServerMetrics) -> None:
    while True:
        metrics.set("pathdex_workers_resident_memory_bytes", resident_bytes())
        await asyncio.sleep(MEMORY_SECONDS)


def _ray_serve() -> Any:
    try:
        return importlib.import_module("ray.serve")
    except ImportError:
        raise MissingExtraError("ray", "ray", "serving on a Ray cluster") from None
