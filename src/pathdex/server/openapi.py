"""The OpenAPI 3.1 document, made from the routes, the structs and the limits, and the page that shows it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

import pathdex
from pathdex.server import schemas
from pathdex.server.http import VERSION_HEADER
from pathdex.server.limits import Limits
from pathdex.server.routes import ROUTES, Route

REQUESTS: dict[str, type[msgspec.Struct]] = {
    "recommend": schemas.RecommendRequest,
    "similar": schemas.SimilarRequest,
    "explain": schemas.ExplainRequest,
    "why_not": schemas.WhyNotRequest,
    "events": schemas.EventsRequest,
}
ANSWERS: dict[str, type[msgspec.Struct]] = {
    "recommend": schemas.Answer,
    "similar": schemas.Answer,
    "explain": schemas.Explained,
    "why_not": schemas.WhyNotAnswer,
    "events": schemas.Stored,
    "item": schemas.ItemFacts,
    "path": schemas.PathFacts,
    "model": schemas.ModelFacts,
    "live": schemas.Health,
    "ready": schemas.Health,
}
EXAMPLES: dict[str, Any] = {
    "recommend": {"history": [260, 1196], "n": 10, "deny": [1210]},
    "similar": {"item": 260, "n": 10},
    "explain": {"history": [260, 1196], "item": 1210},
    "why_not": {"history": [260, 1196], "item": 1210, "n": 10},
    "events": {"user": "ada", "items": [260, 1196]},
}
REFUSALS = {
    400: "The body is no JSON.",
    401: "The token is missing or wrong.",
    404: "There is no such item.",
    408: "The request did not come in time.",
    413: "The body is too large.",
    415: "The body is compressed.",
    422: "A field breaks a rule, or the model cannot answer this.",
    429: "Too many requests are in hand; try again.",
    503: "No model is ready, or the user store fails; try again.",
    504: "The answer took too long.",
}


def describe(limits: Limits, *, token: bool = False) -> dict[str, Any]:
    """The document for a server with these limits; `token` says whether it wants one."""
    types = [*REQUESTS.values(), *ANSWERS.values(), schemas.Query, schemas.Answers, schemas.Refusal]
    _, components = msgspec.json.schema_components(
        list(dict.fromkeys(types)), ref_template="#/components/schemas/{name}"
    )
    _state_rules(components, limits)
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Pathdex",
            "version": pathdex.__version__,
            "description": f"Recommendations by Deep Retrieval. Every answer has the model's version in "
            f"`{VERSION_HEADER.decode()}`, and JSON answers also under `model`.",
        },
        "paths": {},
        "components": {"schemas": components},
    }
    for route in ROUTES:
        document["paths"].setdefault(route.path, {})[route.method.lower()] = _operation(route, token=token)
    if token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return document


@cache
def docs_page() -> bytes:
    """One page without anything from elsewhere; it reads /openapi.json."""
    return files("pathdex.server").joinpath("docs.html").read_bytes()


def _operation(route: Route, *, token: bool) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": route.operation, "summary": route.summary}
    statuses = [408]
    if route.path.endswith("}"):
        name = route.path.partition("{")[2].rstrip("}")
        schema: dict[str, Any] = {"type": "string", "minLength": 1}
        if name == "path":
            schema["pattern"] = "^[0-9]{1,9}(-[0-9]{1,9})*$"
        operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": schema}]
        statuses += [404, 422]
    if route.method == "POST":
        statuses += [400, 413, 415, 422, 504]
        content: dict[str, Any] = {"schema": _ref(REQUESTS[route.operation])}
        content["example"] = EXAMPLES[route.operation]
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    if route.queues:
        statuses += [429, 503]
    if token and not route.free:
        statuses.append(401)
        operation["security"] = [{"token": []}]
    answers = {"200": {"description": "The answer.", "content": _answer(route)}}
    if route.operation == "ready":
        answers["503"] = {"description": "Not ready.", "content": _answer(route)}
    for status in sorted(set(statuses)):
        content = {"application/json": {"schema": _ref(schemas.Refusal)}}
        answers[str(status)] = {"description": REFUSALS[status], "content": content}
    operation["responses"] = answers
    return operation


def _answer(route: Route) -> dict[str, Any]:
    if route.operation == "metrics":
        return {"text/plain": {"schema": {"type": "string"}}}
    if route.operation == "docs":
        return {"text/html": {"schema": {"type": "string"}}}
    if route.operation == "openapi":
        return {"application/json": {"schema": {"type": "object"}}}
    schema = _ref(ANSWERS[route.operation])
    if route.operation == "recommend":
        schema = {"anyOf": [schema, _ref(schemas.Answers)]}
    return {"application/json": {"schema": schema}}


def _ref(struct: type[msgspec.Struct]) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{struct.__name__}"}


def _state_rules(components: dict[str, Any], limits: Limits) -> None:
    """Add what is checked beyond the types: limits, and which fields go together."""
    most = {"n": limits.max_n, "beam": limits.max_beam, "candidates": limits.max_candidates}
    lists = {
        "history": limits.max_history,
        "items": limits.max_history,
        "allow": limits.max_filter,
        "deny": limits.max_filter,
        "queries": limits.max_batch,
        "events": limits.max_batch,
    }
    requests: list[type[msgspec.Struct]] = [*REQUESTS.values(), schemas.Query, schemas.Event]
    for struct in requests:
        for name, schema in components[struct.__name__]["properties"].items():
            for part in _parts(schema):
                if part.get("type") == "integer" and name in most:
                    part["maximum"] = most[name]
                if part.get("type") == "array" and name in lists:
                    part["maxItems"] = lists[name]
            for part in (each for one in _parts(schema) for each in (one, *_parts(one.get("items", {})))):
                if part.get("type") == "string":
                    part["maxLength"] = limits.max_id_length
                if part.get("type") == "integer" and name not in most:
                    part.update(minimum=-(2**63), maximum=2**63 - 1)
    subject = [_has("history", "array"), _has("user", "string", "integer")]
    for struct in (schemas.Query, schemas.ExplainRequest, schemas.WhyNotRequest):
        components[struct.__name__]["oneOf"] = subject
    many = {"type": "object", **_has("queries", "array"), "additionalProperties": False}
    queries = components["RecommendRequest"]["properties"].pop("queries")
    many["properties"] = {"queries": next(part for part in _parts(queries) if part.get("type") == "array")}
    components["RecommendRequest"] = {"title": "RecommendRequest", "anyOf": [_ref(schemas.Query), many]}
    events = components["EventsRequest"]["properties"].pop("events")
    alone = {"type": "object", **_has("events", "array"), "additionalProperties": False}
    alone["properties"] = {"events": next(part for part in _parts(events) if part.get("type") == "array")}
    components["EventsRequest"] = {"title": "EventsRequest", "anyOf": [_ref(schemas.Event), alone]}


def _parts(schema: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = schema.get("anyOf", [schema])
    return found


def _has(name: str, *kinds: str) -> dict[str, Any]:
    return {"required": [name], "properties": {name: {"type": list(kinds)}}}
