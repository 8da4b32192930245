"""One handler per route: a decoded request in, a response out.

A query that takes a fraction of a millisecond runs in the event loop: passing it to a thread costs about as much, and
the thread then competes with the loop for the interpreter. Everything that may take longer (batches, filters by list or
attribute, explanations, any query of a slow model) runs in a small thread pool with a time limit.
"""

from __future__ import annotations

from functools import cache, partial
from importlib.resources import files

import msgspec

from pathdex.server import service
from pathdex.server.asgi import Response
from pathdex.server.model_loader import ServedModel
from pathdex.server.schemas import (
    EventsRequest,
    EventsResponse,
    ExplainRequest,
    ExplainResponse,
    HealthStatus,
    RecommendRequest,
    RecommendResponse,
    SimilarRequest,
    SimilarResponse,
    UserEvents,
    WhyNotRequest,
    WhyNotResponse,
)
from pathdex.server.services import Services

encode = msgspec.json.Encoder().encode


async def recommend(services: Services, served: ServedModel, request: RecommendRequest) -> Response:
    many = request.queries is not None
    queries = [request] if request.queries is None else request.queries
    histories = await services.histories(queries)

    def work() -> tuple[bytes, int]:
        results = service.recommend(served, queries, histories)
        if many:
            response = RecommendResponse(served.version, results=results)
        else:
            response = RecommendResponse(served.version, results[0].items, results[0].unknown)
        return encode(response), sum(result.unknown for result in results)

    inline = not many and served.is_fast and service.is_cheap(queries[0])
    body, unknown = work() if inline else await services.in_thread(work)
    services.metrics.add("pathdex_queries_total", len(queries))
    if unknown:
        services.metrics.add("pathdex_unknown_history_items_total", unknown)
    return Response(body)


async def similar(services: Services, served: ServedModel, request: SimilarRequest) -> Response:
    items = await services.in_thread(partial(service.similar, served, request))
    return Response(encode(SimilarResponse(served.version, items)))


async def explain(services: Services, served: ServedModel, request: ExplainRequest) -> Response:
    [history] = await services.histories([request])
    found = await services.in_thread(partial(service.explain, served, request, history))
    return Response(encode(ExplainResponse(served.version, found)))


async def why_not(services: Services, served: ServedModel, request: WhyNotRequest) -> Response:
    [history] = await services.histories([request])
    found = await services.in_thread(partial(service.why_not, served, request, history))
    return Response(encode(WhyNotResponse(served.version, found)))


async def events(services: Services, served: ServedModel, request: EventsRequest) -> Response:
    users: list[UserEvents] | list[EventsRequest] = [request] if request.events is None else request.events
    stored = [(str(one.user), one.items or []) for one in users]
    await services.append_events(stored)
    number = sum(len(items) for _, items in stored)
    services.metrics.add("pathdex_user_events_total", number)
    return Response(encode(EventsResponse(served.version, number)))


async def item(_: Services, served: ServedModel, id: str) -> Response:
    return Response(encode(service.item_info(served, id)))


async def path(_: Services, served: ServedModel, nodes: str) -> Response:
    return Response(encode(service.path_info(served, nodes)))


async def model(services: Services, served: ServedModel, _: None) -> Response:
    return Response(await services.model_info(served))


async def live(_: Services, served: ServedModel | None, __: None) -> Response:
    return Response(encode(HealthStatus("live", None if served is None else served.version)))


async def ready(services: Services, served: ServedModel | None, _: None) -> Response:
    if services.draining:
        return Response(encode(HealthStatus("draining", None if served is None else served.version)), 503)
    if served is None:
        return Response(encode(HealthStatus("loading")), 503)
    return Response(encode(HealthStatus("ready", served.version)))


async def metrics(services: Services, _: ServedModel | None, __: None) -> Response:
    return Response(services.metrics.render())


async def openapi(services: Services, _: ServedModel | None, __: None) -> Response:
    return Response(services.openapi)


async def docs(_: Services, __: ServedModel | None, ___: None) -> Response:
    return Response(docs_page())


@cache
def docs_page() -> bytes:
    """A page that renders /openapi.json and loads nothing else."""
    return files("pathdex.server").joinpath("docs.html").read_bytes()
