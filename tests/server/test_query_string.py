"""Parameters in the URL: what fits, and what is refused with field, value and rule."""

from __future__ import annotations

import pytest

from pathdex.explorer.overview_schemas import NodeQuery, PathQuery, PathsQuery
from pathdex.server.errors import RequestError
from pathdex.server.query_string import MAX_PARAMETERS, decode_query


def test_missing_parameters_have_their_default() -> None:
    assert decode_query(PathsQuery, b"", {}) == PathsQuery()


def test_parameters_are_decoded() -> None:
    found = decode_query(PathsQuery, b"prefix=3-17&sort=path&page=2&size=7", {})
    assert found == PathsQuery("3-17", "path", 2, 7)


def test_the_parameter_of_the_path_is_a_field() -> None:
    assert decode_query(PathQuery, b"page=3", {"path": "1-2"}) == PathQuery("1-2", 3)
    with pytest.raises(RequestError, match="path='1-2': is given twice; send it once"):
        decode_query(PathQuery, b"path=1-2", {"path": "1-2"})


def test_a_parameter_may_be_required_and_another_be_a_number_or_missing() -> None:
    assert decode_query(NodeQuery, b"layer=2&last=19", {"node": "17"}) == NodeQuery(17, 2, last=19)
    assert decode_query(NodeQuery, b"layer=2", {"node": "17"}).last is None
    for query, message in {
        b"": "layer=None: is required; send it as ?layer=",
        b"layer=two": "layer='two': must be a whole number",
        b"layer=2&last=x": "last='x': must be a whole number",
        b"layer=2&last=-1": "last=-1: does not fit",
    }.items():
        with pytest.raises(RequestError) as caught:
            decode_query(NodeQuery, query, {"node": "17"})
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (b"pag=1", "pag='1': is not a parameter of this request; did you mean 'page'?"),
        (b"x=1", "x='1': is not a parameter of this request; leave it out"),
        (b"page=1&page=2", "page='2': is given twice; send it once"),
        (b"page=one", "page='one': must be a whole number; write it with digits only"),
        (b"page=1.0", "must be a whole number"),
        (b"page=+1", "must be a whole number"),
        (b"page=01", "must be a whole number"),
        (b"page=", "must be a whole number"),
        (b"page=0", "page=0: does not fit: Expected `int` >= 1"),
        (b"size=1000", "size=1000: does not fit: Expected `int` <= 200"),
        (b"sort=none", "sort='none': does not fit: Invalid enum value 'none'"),
        (b"prefix=a", "prefix='a': does not fit: Expected `str` matching regex"),
        (b"page", "the parameters of the URL cannot be read"),
        (b"prefix=%ff", "the parameters of the URL cannot be read"),
        (b"\xff", "the parameters of the URL cannot be read"),
        (b"&".join([b"page=1"] * (MAX_PARAMETERS + 1)), "the parameters of the URL cannot be read"),
    ],
)
def test_what_does_not_fit_is_named(query: bytes, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        decode_query(PathsQuery, query, {})
    assert caught.value.status == 422
    assert message in str(caught.value)
