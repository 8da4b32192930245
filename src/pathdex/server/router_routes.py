"""The routes of a router: those of a server, with handlers that ask the shards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from pathdex.errors import Problem
from pathdex.server import routed_items, routed_queries, routes
from pathdex.server.asgi import Response
from pathdex.server.errors import SERVER, RequestError, unavailable
from pathdex.server.examples import with_ids
from pathdex.server.explore_routes import EXPLORE_ROUTES
from pathdex.server.metrics import PARTIAL
from pathdex.server.route import RouteTable
from pathdex.server.routed_model import RoutedModel, RouterManager
from pathdex.server.schemas import (
    ExplainRequest,
    ExplainResponse,
    HealthStatus,
    RecommendRequest,
    RecommendResponse,
    SimilarRequest,
    SimilarResponse,
    WhyNotRequest,
    WhyNotResponse,
)
from pathdex.server.shard_client import AskedShards, VersionGoneError
from pathdex.server.worker_context import WorkerContext

MISSING_HEADER = b"x-pathdex-missing-shards"
ROUNDS = 3
"""How often a request is answered again if a shard has none of the versions that the router knows."""
PAUSE = 0.1
"""Seconds between two rounds."""

NO_EXPLORER = Problem(
    "a router has no explorer: it holds no items, and each shard only a part of them",
    remedy="run `pathdex explore` on the model that was sharded",
)

AnswerT = TypeVar("AnswerT")
Ask = Callable[[AskedShards, RoutedModel], Awaitable[AnswerT]]

encode = msgspec.json.Encoder().encode


def router_routes(manager: RouterManager) -> RouteTable:
    """The routes of a router with these shards. Those of a shard and of a stream are left out."""
    router = _Router(manager)
    handlers = {
        routes.recommend.name: router.recommend,
        routes.similar.name: router.similar,
        routes.explain.name: router.explain,
        routes.why_not.name: router.why_not,
        routes.item.name: router.item,
        routes.path.name: router.path,
        routes.ready.name: router.ready,
        routes.openapi.name: router.openapi,
    }
    handlers |= {route.name: _no_explorer for route in EXPLORE_ROUTES}
    table = RouteTable()
    for route in routes.ROUTES:
        if not route.internal:
            handler: Any = handlers.get(route.name)
            table.append(route if handler is None else replace(route, handler=_named(handler, route.handler)))
    return table


def _named(handler: Any, original: Any) -> Any:
    """The handler with the name and the summary of the original."""

    async def named(context: WorkerContext, served: Any, request: Any) -> Response:
        response: Response = await handler(context, served, request)
        return response

    named.__name__, named.__doc__ = original.__name__, original.__doc__
    return named


async def _no_explorer(*_: object) -> Response:
    raise RequestError(404, NO_EXPLORER, type=SERVER)


class _Router:
    """Handlers that ask shards."""

    def __init__(self, manager: RouterManager) -> None:
        self.manager = manager

    async def _answer(self, context: WorkerContext, ask: Ask[AnswerT]) -> tuple[AnswerT, RoutedModel, AskedShards]:
        """Ask with the current model or, if a shard lacks it, with another one: never with two."""

        async def rounds() -> tuple[AnswerT, RoutedModel, AskedShards]:
            for _ in range(ROUNDS):
                for model in self.manager.models():
                    asked = self.manager.asked()
                    try:
                        return await ask(asked, model), model, asked
                    except VersionGoneError:
                        continue
                await asyncio.sleep(PAUSE)
            raise unavailable("the shards are changing to another model", "try again")

        return await asyncio.wait_for(rounds(), context.limits.timeout)

    def _respond(
        self, context: WorkerContext, body: bytes, model: RoutedModel, asked: AskedShards, status: int = 200
    ) -> Response:
        headers: tuple[tuple[bytes, bytes], ...] = ()
        if asked.missing:
            context.metrics.add_router(PARTIAL)
            headers = ((MISSING_HEADER, ",".join(map(str, missing_numbers(asked) or ())).encode()),)
        return Response(body, status, headers, model.version)

    async def recommend(self, context: WorkerContext, _: Any, request: RecommendRequest) -> Response:
        many = request.queries is not None
        queries = [request] if request.queries is None else request.queries
        histories = await context.histories(queries)

        async def ask(asked: AskedShards, model: RoutedModel) -> Any:
            results = await routed_queries.recommend(asked, model, queries, histories)
            for query, history, result in zip(queries, histories, results, strict=True):
                for item in result.items if query.explain else []:
                    item.explanation = await routed_items.explain(
                        asked, model, history, item.id, query.beam, lenient=True
                    )
            return results

        results, model, asked = await self._answer(context, ask)
        if many:
            response = RecommendResponse(model.version, results=results)
        else:
            response = RecommendResponse(model.version, results[0].items, results[0].unknown)
        response.missing_shards = missing_numbers(asked)
        context.metrics.add("pathdex_queries_total", len(queries))
        if unknown := sum(result.unknown for result in results):
            context.metrics.add("pathdex_unknown_history_items_total", unknown)
        return self._respond(context, encode(response), model, asked)

    async def similar(self, context: WorkerContext, _: Any, request: SimilarRequest) -> Response:
        items, model, asked = await self._answer(
            context, lambda asked, model: routed_items.similar(asked, model, request)
        )
        response = SimilarResponse(model.version, items, missing_numbers(asked))
        return self._respond(context, encode(response), model, asked)

    async def explain(self, context: WorkerContext, _: Any, request: ExplainRequest) -> Response:
        [history] = await context.histories([request])
        lenient = request.user is not None
        found, model, asked = await self._answer(
            context,
            lambda asked, model: routed_items.explain(
                asked, model, history, request.item, request.beam, lenient=lenient
            ),
        )
        return self._respond(context, encode(ExplainResponse(model.version, found)), model, asked)

    async def why_not(self, context: WorkerContext, _: Any, request: WhyNotRequest) -> Response:
        [history] = await context.histories([request])
        found, model, asked = await self._answer(
            context, lambda asked, model: routed_items.why_not(asked, model, history, request)
        )
        return self._respond(context, encode(WhyNotResponse(model.version, found)), model, asked)

    async def item(self, context: WorkerContext, _: Any, id: str) -> Response:
        found, model, asked = await self._answer(context, lambda asked, model: routed_items.item_info(asked, model, id))
        return self._respond(context, encode(found), model, asked)

    async def path(self, context: WorkerContext, _: Any, nodes: str) -> Response:
        found, model, asked = await self._answer(
            context, lambda asked, model: routed_items.path_info(asked, model, nodes)
        )
        return self._respond(context, encode(found), model, asked)

    async def ready(self, context: WorkerContext, served: RoutedModel | None, _: Any) -> Response:
        if context.draining:
            status = "draining"
        elif served is None:
            status = "loading"
        else:
            status = "ready" if self.manager.is_ready else "shards missing"
        missing = self.manager.missing or UNSET
        version = None if served is None else served.version
        return Response(encode(HealthStatus(status, version, missing)), 200 if status == "ready" else 503)

    async def openapi(self, context: WorkerContext, served: RoutedModel | None, _: Any) -> Response:
        if served is None:
            return Response(context.openapi)
        return Response(with_ids(context.openapi, served.example_ids, served.example_path))


def missing_numbers(asked: AskedShards) -> list[int] | None:
    """The numbers, from 1, of the shards that an answer lacks; None if it is complete."""
    return sorted(index + 1 for index in asked.missing) or None
