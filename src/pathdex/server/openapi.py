"""The OpenAPI 3.1 document, generated from the routes, their structs and the limits."""

from __future__ import annotations

import math
from typing import Any

import msgspec

import pathdex
from pathdex.server.asgi import JSON, MODEL_HEADER
from pathdex.server.limits import ServerLimits
from pathdex.server.route import Route, RouteTable
from pathdex.server.schemas import (
    AddItemsRequest,
    ErrorResponse,
    EventsRequest,
    ExplainRequest,
    NewItem,
    QueryRequest,
    RecommendRequest,
    RecommendResponse,
    UserEvents,
    WhyNotRequest,
)
from pathdex.server.validation import LIMITS

ERRORS = {
    400: "The body is not JSON, or the request is not HTTP.",
    401: "The token is missing or wrong.",
    404: "Not found.",
    408: "The request was not received in time.",
    409: "The server has no stream of events.",
    413: "The body is too large.",
    415: "The body is compressed, or its content type is not JSON.",
    421: "The server does not answer for this host.",
    422: "A field breaks a rule, or the model does not support the request.",
    429: "Too many requests in flight; retry later.",
    503: "No model is loaded, or the user store or the stream is unavailable; retry later.",
    504: "The request took too long.",
}


def describe(
    routes: RouteTable, limits: ServerLimits, *, token: bool = False, hosts: bool = False, strict: bool = False
) -> dict[str, Any]:
    """The document of a server with these routes and limits; `token` and `hosts` say whether it checks these.

    `strict` adds which fields go together, for tests. Generators of clients cannot read that, so the document that is
    served has it in words only.
    """
    routes = RouteTable(route for route in routes if not route.internal)
    requests: list[type] = [route.request for route in routes if route.request is not None]
    responses = [route.response for route in routes if route.response is not bytes]
    _, components = msgspec.json.schema_components(
        {*requests, *responses, ErrorResponse}, ref_template="#/components/schemas/{name}"
    )
    for struct in (*requests, QueryRequest, UserEvents, NewItem):
        _add_limits(components[struct.__name__], limits)
    if strict:
        _add_rules(components)
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Pathdex",
            "version": pathdex.__version__,
            "description": "Recommendations by Deep Retrieval. Responses carry the model version in the header "
            f"`{MODEL_HEADER.decode()}`, and JSON responses also under `model`.",
        },
        "paths": {},
        "components": {"schemas": components},
    }
    for route in routes:
        document["paths"].setdefault(route.path, {})[route.method.lower()] = _operation(route, token=token, hosts=hosts)
    if token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return document


def _operation(route: Route[Any, Any], *, token: bool, hosts: bool) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": route.name, "summary": route.handler.__doc__}
    errors = {408, *route.errors}
    if route.query is not None:
        operation["parameters"] = _query_parameters(route)
        errors |= {404, 422, 504} if route.parameter is not None else {422, 504}
    elif route.parameter is not None:
        schema: dict[str, Any] = {"type": "string", "minLength": 1}
        if route.pattern is not None:
            schema["pattern"] = route.pattern
        operation["parameters"] = [{"name": route.parameter, "in": "path", "required": True, "schema": schema}]
        errors |= {404, 422}
    if route.request is not None:
        content = {"schema": _ref(route.request), "example": dict(route.example)}
        operation["requestBody"] = {"required": True, "content": {JSON: content}}
        errors |= {400, 413, 415, 422, 504}
    if not route.operational:
        errors |= {429, 503}
    if hosts and not route.path.startswith("/health/"):
        errors |= {400, 421}
    if token and not route.public:
        errors.add(401)
        operation["security"] = [{"token": []}]
    responses = {
        str(status): {"description": text, "content": _content(route)} for status, text in route.statuses.items()
    }
    for status in sorted(errors):
        responses[str(status)] = {"description": ERRORS[status], "content": {JSON: {"schema": _ref(ErrorResponse)}}}
    operation["responses"] = responses
    return operation


def _query_parameters(route: Route[Any, Any]) -> list[dict[str, Any]]:
    """The parameters in the URL, from the fields of a struct."""
    assert route.query is not None
    _, components = msgspec.json.schema_components([route.query])
    found = components[route.query.__name__]
    parameters = []
    for name, given in found["properties"].items():
        place = "path" if name == route.parameter else "query"
        schema = {key: value for key, value in given.items() if key != "description"}
        if place == "path":
            schema["minLength"] = 1
        text = {"description": given["description"]} if "description" in given else {}
        required = place == "path" or name in found.get("required", ())
        parameters.append({"name": name, "in": place, "required": required, **text, "schema": schema})
    return parameters


def _content(route: Route[Any, Any]) -> dict[str, Any]:
    if route.response is not bytes:
        return {route.content_type: {"schema": _ref(route.response)}}
    media_type = route.content_type.partition(";")[0]
    return {media_type: {"schema": {"type": "object" if media_type == JSON else "string"}}}


def _ref(struct: type) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{struct.__name__}"}


def _add_limits(component: dict[str, Any], limits: ServerLimits) -> None:
    """Add the limits of numbers, lists and ids to a request."""
    for name, schema in component["properties"].items():
        for part in _parts(schema):
            keyword = {"integer": "maximum", "array": "maxItems"}.get(part.get("type", ""))
            if keyword is not None and name in LIMITS:
                part[keyword] = min(part.get(keyword, math.inf), getattr(limits, LIMITS[name]))
            for one in (part, *_parts(part.get("items", {}))):
                if one.get("type") == "string":
                    one["maxLength"] = limits.max_id_length


def _add_rules(components: dict[str, Any]) -> None:
    """Add which fields go together: a history or a user; one query or a batch."""
    for name in (QueryRequest.__name__, ExplainRequest.__name__, WhyNotRequest.__name__):
        components[name]["oneOf"] = [_has("history", "array"), _has("user", "string", "integer")]
    batches: list[tuple[type, type, str]] = [
        (RecommendRequest, QueryRequest, "queries"),
        (EventsRequest, UserEvents, "events"),
        (AddItemsRequest, NewItem, "new_items"),
    ]
    for struct, single, field in batches:
        name = struct.__name__
        batch = next(part for part in _parts(components[name]["properties"][field]) if part.get("type") == "array")
        alone = {"type": "object", "required": [field], "properties": {field: batch}, "additionalProperties": False}
        components[name] = {"title": name, "description": struct.__doc__, "anyOf": [_ref(single), alone]}
    components[RecommendResponse.__name__]["oneOf"] = [_has("items", "array"), _has("results", "array")]


def _parts(schema: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = schema.get("anyOf", [schema])
    return found


def _has(name: str, *kinds: str) -> dict[str, Any]:
    return {"required": [name], "properties": {name: {"type": list(kinds)}}}
