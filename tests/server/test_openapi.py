"""The OpenAPI document. test_robustness.py checks that the server conforms to it."""

from __future__ import annotations

import json
from typing import Any

from pathdex.server.limits import ServerLimits
from pathdex.server.openapi import describe
from pathdex.server.routes import ROUTES

DOCUMENT = describe(ROUTES, ServerLimits())


def refs(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*(refs(one) for one in value.values()))
    return set().union(*(refs(one) for one in value)) if isinstance(value, list) else set()


def test_every_route_is_described() -> None:
    for route in (one for one in ROUTES if not one.internal):
        operation = DOCUMENT["paths"][route.path][route.method.lower()]
        assert (operation["operationId"], operation["summary"]) == (route.name, route.handler.__doc__)
        assert {str(status) for status in route.statuses} <= set(operation["responses"])
        assert ("requestBody" in operation) == (route.request is not None)
        if route.request is not None:
            assert operation["requestBody"]["content"]["application/json"]["example"] == route.example
    assert sum(map(len, DOCUMENT["paths"].values())) == len([route for route in ROUTES if not route.internal])


def test_every_reference_exists() -> None:
    wanted = {ref.removeprefix("#/components/schemas/") for ref in refs(DOCUMENT)}
    assert wanted <= set(DOCUMENT["components"]["schemas"])
    assert json.loads(json.dumps(DOCUMENT)) == DOCUMENT


def test_limits_are_in_the_document() -> None:
    limits = ServerLimits(max_n=7, max_history=8, max_id_length=9, max_filter=10)
    query = describe(ROUTES, limits)["components"]["schemas"]["QueryRequest"]
    assert query["properties"]["n"]["maximum"] == 7
    history = query["properties"]["history"]["anyOf"][0]
    assert (history["maxItems"], history["items"]["anyOf"][0]["maxLength"]) == (8, 9)
    assert query["properties"]["deny"]["maxItems"] == 10


def test_a_token_is_in_the_document_if_it_is_required() -> None:
    guarded = describe(ROUTES, ServerLimits(), token=True)
    assert "securitySchemes" not in DOCUMENT["components"]
    assert guarded["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    for route in (one for one in ROUTES if not one.internal):
        operation = guarded["paths"][route.path][route.method.lower()]
        assert ("security" in operation, "401" in operation["responses"]) == (not route.public,) * 2
