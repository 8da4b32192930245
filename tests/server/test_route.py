"""One route: its parameter, its decoders, its URL."""

from __future__ import annotations

import pytest

from pathdex.server.errors import RequestError
from pathdex.server.limits import ServerLimits
from pathdex.server.routes import ITEM, MODEL, RECOMMEND, SIMILAR
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
    assert ITEM.match_parameter(raw) == parameter


@pytest.mark.parametrize("id", ["a/b", "\u65e5", "a b?c=d#e", "%2F", "."])
def test_the_url_of_a_parameter_matches_it(id: str) -> None:
    assert ITEM.match_parameter(ITEM.url(id).encode()) == id


def test_a_route_knows_its_name_and_parameter() -> None:
    assert (ITEM.name, ITEM.prefix, ITEM.parameter) == ("item", "/v1/items/", "id")
    assert (MODEL.parameter, MODEL.url()) == (None, "/v1/model")


def test_bodies_are_decoded_and_checked() -> None:
    assert SIMILAR.parse(b'{"item": 1, "n": 3}', ServerLimits()) == SimilarRequest(1, 3)
    with pytest.raises(RequestError, match="n=3: must be at most 2"):
        SIMILAR.parse(b'{"item": 1, "n": 3}', ServerLimits(max_n=2))


def test_responses_are_decoded() -> None:
    assert ITEM.parse_response(b'{"model": "m", "id": 1, "paths": null}') == ItemInfo("m", 1, None)
    with pytest.raises(ValueError):
        RECOMMEND.parse_response(b"{}")
