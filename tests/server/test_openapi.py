"""The OpenAPI document says what the server does. That the server keeps to it is tested in test_robustness.py."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pathdex.server.endpoints import Endpoints

from pathdex.server.errors import RequestError
from pathdex.server.limits import ServerLimits
from pathdex.server.openapi import EXAMPLES, REQUESTS, describe, docs_page
from pathdex.server.routes import ROUTES, find
from pathdex.server.schemas import RULES


def refs(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*(refs(one) for one in value.values()))
    return set().union(*(refs(one) for one in value)) if isinstance(value, list) else set()


def test_every_route_is_described_and_implemented() -> None:
    document = describe(ServerLimits())
    assert {(path, method.upper()) for path, methods in document["paths"].items() for method in methods} == {
        (route.path, route.method) for route in ROUTES
    }
    for route in ROUTES:
        assert callable(getattr(Endpoints, route.operation))
        assert document["paths"][route.path][route.method.lower()]["responses"]["200"]


def test_every_reference_leads_somewhere() -> None:
    document = describe(ServerLimits())
    wanted = {ref.removeprefix("#/components/schemas/") for ref in refs(document)}
    assert wanted <= set(document["components"]["schemas"])
    assert json.loads(json.dumps(document)) == document


def test_limits_are_in_the_document() -> None:
    query = describe(ServerLimits(max_n=7, max_history=8, max_id_length=9, max_filter=10))["components"]["schemas"][
        "Query"
    ]
    assert query["properties"]["n"]["maximum"] == 7
    history = query["properties"]["history"]["anyOf"][0]
    assert (history["maxItems"], history["items"]["anyOf"][0]["maxLength"]) == (8, 9)
    assert query["properties"]["deny"]["maxItems"] == 10


def test_a_token_is_in_the_document_where_one_is_needed() -> None:
    plain, guarded = describe(ServerLimits()), describe(ServerLimits(), token=True)
    assert "securitySchemes" not in plain["components"]
    assert guarded["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    for route in ROUTES:
        operation = guarded["paths"][route.path][route.method.lower()]
        assert ("security" in operation, "401" in operation["responses"]) == (not route.free,) * 2


def test_every_field_of_a_request_has_a_rule_for_its_errors() -> None:
    for struct in REQUESTS.values():
        assert set(struct.__struct_fields__) <= set(RULES)
    assert set(EXAMPLES) == set(REQUESTS)


def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = docs_page().decode()
    assert not re.findall(r"https?://|//cdn|@import|<link|src=", page)
    assert 'fetch("openapi.json")' in page


@pytest.mark.parametrize(
    ("raw", "argument"),
    [(b"/v1/items/a%2Fb", "a/b"), (b"/v1/items/%E6%97%A5", "日"), (b"/v1/items/a+b", "a+b"), (b"/v1/items/%zz", "%zz")],
)
def test_an_argument_is_taken_from_the_raw_path(raw: bytes, argument: str) -> None:
    route, found = find("/v1/items/whatever", raw, "GET")
    assert (route.operation, found) == ("item", argument)


def test_a_path_without_a_route_is_404() -> None:
    with pytest.raises(RequestError, match="/v1/items/a/b is not a path of this server; GET /docs lists them"):
        find("/v1/items/a/b", b"/v1/items/a/b", "GET")
