"""The table of routes."""

from __future__ import annotations

import pytest

from pathdex.server.errors import RequestError
from pathdex.server.limits import ServerLimits
from pathdex.server.routes import DOCS, EVENTS, ITEM, ROUTES, match


def test_paths_and_names_are_unique() -> None:
    assert len({route.path for route in ROUTES}) == len({route.name for route in ROUTES}) == len(ROUTES)


def test_every_example_is_valid() -> None:
    import msgspec

    for route in ROUTES:
        assert (route.request is not None) == bool(route.example) == (route.method == "POST")
        if route.request is not None:
            route.parse(msgspec.json.encode(dict(route.example)), ServerLimits())


def test_only_events_must_not_be_repeated() -> None:
    assert [route for route in ROUTES if not route.safe_to_repeat] == [EVENTS]


def test_a_route_matches_by_path_and_method() -> None:
    assert match("/v1/items/x", b"/v1/items/x", "GET") == (ITEM, "x")
    assert match("/docs", b"/docs", "HEAD") == (DOCS, None)


def test_an_unknown_path_is_404() -> None:
    with pytest.raises(RequestError, match="no route for /v1/items/a/b; see /docs") as caught:
        match("/v1/items/a/b", b"/v1/items/a/b", "GET")
    assert caught.value.status == 404


def test_a_wrong_method_is_405() -> None:
    with pytest.raises(RequestError, match="PUT is not allowed on /v1/events; use POST") as caught:
        match("/v1/events", b"/v1/events", "PUT")
    assert (caught.value.status, caught.value.headers) == (405, ((b"allow", b"POST"),))
