"""Every route of the server, each declared once: the handler takes a decoded request and returns a response.

A query that takes a fraction of a millisecond runs in the event loop: passing it to a thread costs about as much, and
the thread then competes with the loop for the interpreter. Everything that may take longer (batches, filters by list or
attribute, explanations, any query of a slow model) runs in a small thread pool with a time limit.
"""

from __future__ import annotations

from importlib.resources import files

import msgspec

from pathdex.server import service
from pathdex.server.asgi import HTML, TEXT, Response
from pathdex.server.event_feed import additions, removals
from pathdex.server.examples import with_served_ids
from pathdex.server.explore_page import PAGE_ROUTES
from pathdex.server.explore_routes import EXPLORE_ROUTES
from pathdex.server.model_loader import ServedModel
from pathdex.server.route import RouteTable
from pathdex.server.schemas import (
    AddItemsRequest,
    EventsRequest,
    EventsResponse,
    ExplainRequest,
    ExplainResponse,
    ForgottenUser,
    HealthStatus,
    ItemInfo,
    ItemsResponse,
    ModelInfo,
    PathInfo,
    RecommendRequest,
    RecommendResponse,
    RemoveItemsRequest,
    SimilarRequest,
    SimilarResponse,
    StoredHistory,
    WhyNotRequest,
    WhyNotResponse,
)
from pathdex.server.shard_routes import SHARD_ROUTES
from pathdex.server.worker_context import WorkerContext

ROUTES = RouteTable()

encode = msgspec.json.Encoder().encode


@ROUTES.post("/v1/recommend", RecommendRequest, RecommendResponse, {"history": [260, 1196], "n": 10, "deny": [1210]})
async def recommend(context: WorkerContext, served: ServedModel, request: RecommendRequest) -> Response:
    """Recommend items for one history or for many."""
    many = request.queries is not None
    queries = [request] if request.queries is None else request.queries
    histories = await context.histories(queries)
    hidden = context.hidden.in_model(served)

    def work() -> tuple[bytes, int]:
        results = service.recommend(served, queries, histories, hidden)
        if many:
            response = RecommendResponse(served.version, results=results)
        else:
            response = RecommendResponse(served.version, results[0].items, results[0].unknown)
        return encode(response), sum(result.unknown for result in results)

    inline = not many and served.is_fast and service.is_cheap(queries[0], hidden)
    body, unknown = work() if inline else await context.in_thread(work)
    context.metrics.add("pathdex_queries_total", len(queries))
    if unknown:
        context.metrics.add("pathdex_unknown_history_items_total", unknown)
    return Response(body)


@ROUTES.post("/v1/similar", SimilarRequest, SimilarResponse, {"item": 260, "n": 10})
async def similar(context: WorkerContext, served: ServedModel, request: SimilarRequest) -> Response:
    """Find the items most similar to an item."""
    hidden = context.hidden.in_model(served)
    return Response(await context.in_thread(lambda: encode(service.similar(served, request, hidden))))


@ROUTES.post("/v1/explain", ExplainRequest, ExplainResponse, {"history": [260, 1196], "item": 1210})
async def explain(context: WorkerContext, served: ServedModel, request: ExplainRequest) -> Response:
    """Show the paths that lead from a history to an item."""
    [history] = await context.histories([request])
    return Response(await context.in_thread(lambda: encode(service.explain(served, request, history))))


@ROUTES.post("/v1/why-not", WhyNotRequest, WhyNotResponse, {"history": [260, 1196], "item": 1210, "n": 10})
async def why_not(context: WorkerContext, served: ServedModel, request: WhyNotRequest) -> Response:
    """Show what keeps an item out of the recommendations."""
    [history] = await context.histories([request])
    return Response(await context.in_thread(lambda: encode(service.why_not(served, request, history))))


@ROUTES.post("/v1/events", EventsRequest, EventsResponse, {"user": "ada", "items": [260, 1196]}, safe_to_repeat=False)
async def events(context: WorkerContext, served: ServedModel, request: EventsRequest) -> Response:
    """Append to the histories of users, to the stream, or to both."""
    number = await context.append_events([request] if request.events is None else request.events)
    return Response(encode(EventsResponse(served.version, number)))


@ROUTES.get("/v1/users/{id}", StoredHistory)
async def user(context: WorkerContext, served: ServedModel, id: str) -> Response:
    """Get the stored history of a user."""
    return Response(encode(StoredHistory(served.version, id, await context.history_of(id))))


@ROUTES.delete("/v1/users/{id}", ForgottenUser)
async def forget_user(context: WorkerContext, served: ServedModel, id: str) -> Response:
    """Remove the stored history of a user."""
    await context.forget(id)
    return Response(encode(ForgottenUser(served.version, id)))


ACCEPTED = {202: "The changes are in the stream."}


@ROUTES.post(
    "/v1/items",
    AddItemsRequest,
    ItemsResponse,
    {"id": 1210, "like": [260], "attributes": {"genre": "drama|crime"}},
    statuses=ACCEPTED,
    errors=(409,),
)
async def add_items(context: WorkerContext, served: ServedModel, request: AddItemsRequest) -> Response:
    """Add items to the stream, before their first event."""
    changes = additions(request)
    await context.change_items(changes)
    return Response(encode(ItemsResponse(served.version, len(changes))), 202)


@ROUTES.delete(
    "/v1/items", ItemsResponse, RemoveItemsRequest, example={"ids": [1210]}, statuses=ACCEPTED, errors=(409,)
)
async def remove_items(context: WorkerContext, served: ServedModel, request: RemoveItemsRequest) -> Response:
    """Remove items from the stream."""
    changes = removals(request.ids)
    await context.change_items(changes)
    return Response(encode(ItemsResponse(served.version, len(changes))), 202)


@ROUTES.delete("/v1/items/{id}", ItemsResponse, statuses=ACCEPTED, errors=(409,))
async def remove_item(context: WorkerContext, served: ServedModel, id: str) -> Response:
    """Remove an item from the stream."""
    await context.change_items(removals([id], "id"))
    return Response(encode(ItemsResponse(served.version, 1)), 202)


@ROUTES.get("/v1/items/{id}", ItemInfo)
async def item(_: WorkerContext, served: ServedModel, id: str) -> Response:
    """Get an item and its paths."""
    return Response(encode(service.item_info(served, id)))


@ROUTES.get("/v1/paths/{path}", PathInfo, pattern="^[0-9]{1,9}(-[0-9]{1,9})*$")
async def path(_: WorkerContext, served: ServedModel, nodes: str) -> Response:
    """List the items on a path, written as 3-17-5."""
    return Response(encode(service.path_info(served, nodes)))


@ROUTES.get("/v1/model", ModelInfo)
async def model(context: WorkerContext, served: ServedModel, _: None) -> Response:
    """Describe the model."""
    return Response(await context.in_thread(lambda: encode(served.info)))


@ROUTES.get("/health/live", HealthStatus, operational=True, public=True)
async def live(_: WorkerContext, served: ServedModel | None, __: None) -> Response:
    """Check that the process responds."""
    return Response(encode(HealthStatus("live", None if served is None else served.version)))


@ROUTES.get("/health/ready", HealthStatus, operational=True, public=True, statuses={200: "Ready.", 503: "Not ready."})
async def ready(context: WorkerContext, served: ServedModel | None, _: None) -> Response:
    """Check that a model is loaded and warm."""
    status = "draining" if context.draining else "loading" if served is None else "ready"
    version = None if served is None else served.version
    return Response(encode(HealthStatus(status, version)), 200 if status == "ready" else 503)


@ROUTES.get("/metrics", bytes, content_type=TEXT, operational=True)
async def metrics(context: WorkerContext, _: ServedModel | None, __: None) -> Response:
    """Export metrics for Prometheus."""
    return Response(context.metrics.render())


@ROUTES.get("/openapi.json", bytes, operational=True, public=True)
async def openapi(context: WorkerContext, served: ServedModel | None, __: None) -> Response:
    """Get this document."""
    # A router has no ids to make examples of.
    return Response(with_served_ids(context.openapi, served) if isinstance(served, ServedModel) else context.openapi)


@ROUTES.get("/", bytes, content_type=HTML, operational=True, public=True, statuses={307: "See /docs."})
async def root(_: WorkerContext, __: ServedModel | None, ___: None) -> Response:
    """Go to the documentation."""
    return Response(b"", 307, ((b"location", b"/docs"),))


@ROUTES.get("/docs", bytes, content_type=HTML, operational=True, public=True)
async def docs(_: WorkerContext, __: ServedModel | None, ___: None) -> Response:
    """Browse this document and try out requests."""
    return Response(files("pathdex.server").joinpath("docs.html").read_bytes())


ROUTES.extend([*SHARD_ROUTES, *EXPLORE_ROUTES, *PAGE_ROUTES])
