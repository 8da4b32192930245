"""Which path and method is which operation. Both the server and the OpenAPI document read this table."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from pathdex.server.errors import SERVER, RequestError


@dataclass(frozen=True)
class Route:
    """One operation of the server."""

    method: str
    path: str
    """Ends in `{name}` where the rest of the path is an argument."""
    operation: str
    """The name of the function that answers it."""
    summary: str
    queues: bool = True
    """Whether it counts among the requests that wait for a turn; health and metrics must answer when all are taken."""
    free: bool = False
    """Whether it needs no token."""


ROUTES = (
    Route("POST", "/v1/recommend", "recommend", "Recommend items for one history or many."),
    Route("POST", "/v1/similar", "similar", "The items most like one item."),
    Route("POST", "/v1/explain", "explain", "The paths that lead from a history to an item."),
    Route("POST", "/v1/why-not", "why_not", "What kept an item out of an answer."),
    Route("POST", "/v1/events", "events", "Append to the histories of users."),
    Route("GET", "/v1/items/{id}", "item", "One item and its paths."),
    Route("GET", "/v1/paths/{path}", "path", "The items on one path, written as 3-17-5."),
    Route("GET", "/v1/model", "model", "What is served."),
    Route("GET", "/health/live", "live", "Whether the process answers.", queues=False, free=True),
    Route("GET", "/health/ready", "ready", "Whether a model is loaded and warm.", queues=False, free=True),
    Route("GET", "/metrics", "metrics", "Figures for Prometheus.", queues=False),
    Route("GET", "/openapi.json", "openapi", "This description.", queues=False, free=True),
    Route("GET", "/docs", "docs", "A page that shows this description.", queues=False, free=True),
)
OTHER = "other"
NAMES = (*(route.path for route in ROUTES), OTHER)
"""The values of the label `route`; what is asked for in vain counts as `other`."""

_EXACT = {route.path: route for route in ROUTES if not route.path.endswith("}")}
_PREFIXES = [(route.path.partition("{")[0].encode(), route) for route in ROUTES if route.path.endswith("}")]


def find(path: str, raw_path: bytes, method: str) -> tuple[Route, str]:
    """The route of a request, and what stands in the place of its argument; status 404 or 405 without one.

    HEAD is answered like GET. The argument is taken from the raw path, so an id may hold an encoded slash.
    """
    route, argument = _EXACT.get(path), ""
    if route is None:
        for prefix, candidate in _PREFIXES:
            rest = raw_path.removeprefix(prefix)
            if rest and len(rest) < len(raw_path) and b"/" not in rest:
                route, argument = candidate, unquote(rest.decode("latin-1"))
                break
        else:
            raise RequestError(404, f"{path[:200]} is not a path of this server; GET /docs lists them", kind=SERVER)
    if method == route.method or (method == "HEAD" and route.method == "GET"):
        return route, argument
    allowed = "GET, HEAD" if route.method == "GET" else route.method
    raise RequestError(
        405,
        f"{method} is not a method of {route.path}; use {allowed}",
        kind=SERVER,
        headers=((b"allow", allowed.encode()),),
    )
