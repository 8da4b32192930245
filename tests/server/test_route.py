"""One route: its parameter, its decoders, its URL; and matching a request with the table of routes."""

from __future__ import annotations

import pytest

from pathdex.server.errors import RequestError
from pathdex.server.limits import ServerLimits
from pathdex.server.routes import ROUTES, docs, item, model, recommend, similar
from pathdex.server.schemas import ItemInfo, SimilarRequest


@pytest.mark.parametrize(
    ("raw", "parameter"),
    [
        (b"/v1/items/a%2Fb", "a/b"),
        (b"/v1/items/%E6%97%A5", "\u65e5"),
        (b"/v1/items/a+b", "a+b"),
        (b"/v1/items/%zz", "%zz"),
        (b"/v1/items/a/b", None),
        (b"/v1/items/", None),
        (b"/v1/paths/1", None),
    ],
)
def test_the_parameter_is_taken_from_the_raw_path(raw: bytes, parameter: str | None) -> None:
    assert item.match_parameter(raw) == parameter


@pytest.mark.parametrize("id", ["a/b", "\u65e5", "a b?c=d#e", "%2F", "."])
def test_the_url_of_a_parameter_matches_it(id: str) -> None:
    assert item.match_parameter(item.url(id).encode()) == id


def test_a_route_knows_its_name_and_parameter() -> None:
    assert (item.name, item.prefix, item.parameter) == ("item", "/v1/items/", "id")
    assert (model.parameter, model.url()) == (None, "/v1/model")


def test_bodies_are_decoded_and_checked() -> None:
    assert similar.parse(b'{"item": 1, "n": 3}', ServerLimits()) == SimilarRequest(1, 3)
    with pytest.raises(RequestError, match="n=3: must be at most 2"):
        similar.parse(b'{"item": 1, "n": 3}', ServerLimits(max_n=2))


def test_responses_are_decoded() -> None:
    assert item.parse_response(b'{"model": "m", "id": 1, "paths": null}') == ItemInfo("m", 1, None)
    with pytest.raises(ValueError):
        recommend.parse_response(b"{}")


def test_a_route_matches_by_path_and_method() -> None:
    assert ROUTES.match("/v1/items/x", b"/v1/items/x", "GET") == (item, "x")
    assert ROUTES.match("/docs", b"/docs", "HEAD") == (docs, None)


def test_an_unknown_path_is_404() -> None:
    with pytest.raises(RequestError, match="no route for /v1/items/a/b; see /docs") as caught:
        ROUTES.match("/v1/items/a/b", b"/v1/items/a/b", "GET")
    assert caught.value.status == 404


def test_a_wrong_method_is_405() -> None:
    with pytest.raises(RequestError, match="PUT is not allowed on /v1/events; use POST") as caught:
        ROUTES.match("/v1/events", b"/v1/events", "PUT")
    assert (caught.value.status, caught.value.headers) == (405, ((b"allow", b"POST"),))
