"""Every route of the server, each declared once."""

from __future__ import annotations

from typing import Any

from pathdex.errors import Problem
from pathdex.server import handlers, validation
from pathdex.server.asgi import HTML, TEXT
from pathdex.server.errors import SERVER, RequestError
from pathdex.server.route import Route
from pathdex.server.schemas import (
    EventsRequest,
    EventsResponse,
    ExplainRequest,
    ExplainResponse,
    HealthStatus,
    ItemInfo,
    ModelInfo,
    PathInfo,
    RecommendRequest,
    RecommendResponse,
    SimilarRequest,
    SimilarResponse,
    WhyNotRequest,
    WhyNotResponse,
)

RECOMMEND = Route(
    "POST",
    "/v1/recommend",
    handlers.recommend,
    "Recommend items for one history or for many.",
    RecommendRequest,
    RecommendResponse,
    validation.check_recommend,
    {"history": [260, 1196], "n": 10, "deny": [1210]},
)
SIMILAR = Route(
    "POST",
    "/v1/similar",
    handlers.similar,
    "Find the items most similar to an item.",
    SimilarRequest,
    SimilarResponse,
    validation.check_similar,
    {"item": 260, "n": 10},
)
EXPLAIN = Route(
    "POST",
    "/v1/explain",
    handlers.explain,
    "Show the paths that lead from a history to an item.",
    ExplainRequest,
    ExplainResponse,
    validation.check_explain,
    {"history": [260, 1196], "item": 1210},
)
WHY_NOT = Route(
    "POST",
    "/v1/why-not",
    handlers.why_not,
    "Show what keeps an item out of the recommendations.",
    WhyNotRequest,
    WhyNotResponse,
    validation.check_why_not,
    {"history": [260, 1196], "item": 1210, "n": 10},
)
EVENTS = Route(
    "POST",
    "/v1/events",
    handlers.events,
    "Append to the histories of users.",
    EventsRequest,
    EventsResponse,
    validation.check_events,
    {"user": "ada", "items": [260, 1196]},
    safe_to_repeat=False,
)
ITEM: Route[str, ItemInfo] = Route(
    "GET", "/v1/items/{id}", handlers.item, "Get an item and its paths.", response=ItemInfo
)
PATH: Route[str, PathInfo] = Route(
    "GET",
    "/v1/paths/{path}",
    handlers.path,
    "List the items on a path, written as 3-17-5.",
    response=PathInfo,
    pattern="^[0-9]{1,9}(-[0-9]{1,9})*$",
)
MODEL: Route[None, ModelInfo] = Route("GET", "/v1/model", handlers.model, "Describe the model.", response=ModelInfo)
LIVE: Route[None, HealthStatus] = Route(
    "GET",
    "/health/live",
    handlers.live,
    "Check that the process responds.",
    response=HealthStatus,
    needs_token=False,
    needs_model=False,
    queued=False,
)
READY: Route[None, HealthStatus] = Route(
    "GET",
    "/health/ready",
    handlers.ready,
    "Check that a model is loaded and warm.",
    response=HealthStatus,
    statuses={200: "Ready.", 503: "Not ready."},
    needs_token=False,
    needs_model=False,
    queued=False,
)
METRICS: Route[None, Any] = Route(
    "GET",
    "/metrics",
    handlers.metrics,
    "Export metrics for Prometheus.",
    content_type=TEXT,
    needs_model=False,
    queued=False,
)
OPENAPI: Route[None, Any] = Route(
    "GET",
    "/openapi.json",
    handlers.openapi,
    "Get this document.",
    needs_token=False,
    needs_model=False,
    queued=False,
)
DOCS: Route[None, Any] = Route(
    "GET",
    "/docs",
    handlers.docs,
    "Browse this document and try out requests.",
    content_type=HTML,
    needs_token=False,
    needs_model=False,
    queued=False,
)
ROUTES: tuple[Route[Any, Any], ...] = (
    RECOMMEND,
    SIMILAR,
    EXPLAIN,
    WHY_NOT,
    EVENTS,
    ITEM,
    PATH,
    MODEL,
    LIVE,
    READY,
    METRICS,
    OPENAPI,
    DOCS,
)

_EXACT = {route.path: route for route in ROUTES if route.parameter is None}
_PARAMETRISED = [route for route in ROUTES if route.parameter is not None]


def match(path: str, raw_path: bytes, method: str) -> tuple[Route[Any, Any], str | None]:
    """The route of a request and its path parameter; status 404 or 405 if there is none. HEAD matches GET."""
    route, parameter = _EXACT.get(path), None
    if route is None:
        for candidate in _PARAMETRISED:
            parameter = candidate.match_parameter(raw_path)
            if parameter is not None:
                route = candidate
                break
        else:
            raise RequestError(404, Problem(f"no route for {path[:200]}", remedy="see /docs"), type=SERVER)
    if method == route.method or (method == "HEAD" and route.method == "GET"):
        return route, parameter
    allowed = "GET, HEAD" if route.method == "GET" else route.method
    problem = Problem(f"{method} is not allowed on {route.path}", remedy=f"use {allowed}")
    raise RequestError(405, problem, type=SERVER, headers=((b"allow", allowed.encode()),))
