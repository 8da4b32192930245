"""JSON bodies to requests: errors name the field, its value and the rule."""

from __future__ import annotations

import json
import threading
from typing import Any

import msgspec
import pytest

from pathdex.errors import Problem
from pathdex.server.errors import RequestError
from pathdex.server.parsing import RULES, decode, make_decoder
from pathdex.server.routes import ROUTES
from pathdex.server.schemas import EventsRequest, ExplainRequest, QueryRequest, RecommendRequest, SimilarRequest

IDS = "must be a list of ids (strings or integers)"
COUNT = "must be a whole number of at least 1"
ID = "must be an id: a string or an integer"


def parse(body: Any, kind: type[Any] = RecommendRequest) -> Any:
    return decode(msgspec.json.Decoder(kind), body if isinstance(body, bytes) else json.dumps(body).encode())


def rejected(body: Any, kind: type[Any] = RecommendRequest) -> RequestError:
    with pytest.raises(RequestError) as caught:
        parse(body, kind)
    return caught.value


def test_a_query_has_defaults() -> None:
    query = parse(b'{"history": [1, "a"]}')
    assert (query.history, query.n, query.exclude_seen, query.deny, query.explain) == ([1, "a"], 10, True, [], False)
    assert (query.user, query.beam, query.candidates, query.allow, query.where, query.queries) == (None,) * 6


def test_a_batch() -> None:
    assert parse(b'{"queries": [{"history": []}, {"user": 7, "n": 2}]}').queries == [
        QueryRequest(history=[]),
        QueryRequest(user=7, n=2),
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"history": [NaN]}',
        b'{"history": [Infinity]}',
        b"{'history': []}",
        b'{"history": []} {}',
        b'\xef\xbb\xbf{"history": []}',
        b'{"where": {"a": ' + b"[" * 100_000,
        b'{"n": "wrong", "history": [',
    ],
    ids=range(9),
)
def test_a_body_that_is_not_json_is_400(body: bytes) -> None:
    error = rejected(body)
    assert error.status == 400
    assert str(error).startswith(("the body is not JSON (", "the body is nested too deeply; send a flat JSON object"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"history": ["\xff"]}', "the body is not UTF-8 text (byte 14); send one JSON object"),
        (
            b'{"history": ["a\\ud800"]}',
            "the body has text that is not Unicode: \\ud800 is half a character; send both halves",
        ),
        (
            b'{"user": "\\udc00b", "history": []}',
            "the body has text that is not Unicode: \\udc00 is half a character; send both halves",
        ),
        (
            b'{"history": [1e999]}',
            "the body cannot be read (Number out of range - at `$[...][0]`); send smaller numbers",
        ),
    ],
)
def test_text_and_numbers_that_cannot_be_read_are_400(body: bytes, message: str) -> None:
    error = rejected(body)
    assert (error.status, str(error)) == (400, message)


def test_deep_nesting_is_rejected() -> None:
    body = b'{"where": ' + b'{"a":' * 3000 + b"1" + b"}" * 3001
    assert str(rejected(body)) == "the body is nested too deeply; send a flat JSON object"


@pytest.mark.parametrize(
    ("field", "value", "rule", "remedy"),
    [
        ("n", 0, COUNT, "request at least one item"),
        ("n", 2.5, COUNT, "request at least one item"),
        ("n", True, COUNT, "request at least one item"),
        ("n", "3", COUNT, "request at least one item"),
        ("n", None, COUNT, "request at least one item"),
        ("n", -(10**30), COUNT, "request at least one item"),
        ("beam", 0, COUNT, "leave it out for the model's default"),
        ("candidates", -1, COUNT, "leave it out for no limit"),
        ("history", "abc", f"{IDS}, oldest first", None),
        ("allow", {}, IDS, "leave it out to allow all items"),
        ("where", [], 'must map columns to conditions, such as {"category": ["a", "b"]}', None),
        ("exclude_seen", 1, "must be true or false", None),
        ("explain", "yes", "must be true or false", None),
        ("user", 1.5, ID, None),
    ],
)
def test_a_value_of_the_wrong_type(field: str, value: Any, rule: str, remedy: str | None) -> None:
    query = {"history": [], field: value}
    for place, body in (("", query), ("queries[1].", {"queries": [{"history": []}, query]})):
        error = rejected(body)
        assert error.status == 422
        assert error.problem == Problem(rule, place + field, value, remedy)


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        (RecommendRequest, {"history": [1.5]}, Problem(ID, "history[0]", 1.5)),
        (RecommendRequest, {"history": ["a", None]}, Problem(ID, "history[1]", None)),
        (RecommendRequest, {"history": [], "deny": [True]}, Problem(ID, "deny[0]", True)),
        (RecommendRequest, {"queries": 3}, Problem("must be a list of queries", "queries", 3)),
        (RecommendRequest, {"queries": [3]}, Problem("must be a JSON object", "queries[0]", 3)),
        (RecommendRequest, [], Problem("must be a JSON object", "body", [])),
        (RecommendRequest, None, Problem("must be a JSON object", "body", None)),
        (SimilarRequest, {}, Problem("is required", "item")),
        (SimilarRequest, {"item": None}, Problem(ID, "item", None)),
        (ExplainRequest, {"history": []}, Problem("is required", "item")),
        (EventsRequest, {"user": 1, "items": 5}, Problem(f"{IDS}, oldest first", "items", 5)),
        (EventsRequest, {"events": [{"user": 1}]}, Problem("is required", "events[0].items")),
    ],
)
def test_the_field_is_located(kind: type[Any], body: Any, problem: Problem) -> None:
    assert rejected(body, kind).problem == problem


def test_an_unknown_field() -> None:
    assert str(rejected({"histroy": []})) == "histroy=[]: is not a field of this request; did you mean 'history'?"
    assert str(rejected({"queries": [{"zzz": 1}]})) == "queries[0].zzz=1: is not a field of this request; leave it out"


def test_a_repeated_key_has_an_error_too() -> None:
    error = rejected(b'{"history": [], "n": 0, "n": 1}')
    assert (error.status, str(error)) == (422, "the body does not fit (Expected `int` >= 1 - at `$.n`)")


def test_every_field_of_a_request_has_a_rule() -> None:
    for route in ROUTES:
        if route.request is not None and not route.internal:
            assert set(route.request.__struct_fields__) <= set(RULES)


@pytest.mark.parametrize("text", ["43233.0", "4.3233e4", "43233"])
def test_whole_numbers_are_written_in_any_way(text: str) -> None:
    """JSON Schema, and so the OpenAPI document, has no other integers."""
    query = parse(f'{{"history": [{text}, "a"], "n": {text}, "deny": [{text}]}}'.encode())
    assert (query.history, query.n, query.deny) == ([43233, "a"], 43233, [43233])
    assert all(type(one) is int for one in (query.history[0], query.n, query.deny[0]))
    assert parse(f'{{"queries": [{{"user": {text}}}]}}'.encode()).queries[0].user == 43233


@pytest.mark.parametrize("text", ["43233.5", "9007199254740993.0", "1e300", "-0.5"])
def test_fractions_and_inexact_numbers_are_no_ids(text: str) -> None:
    """From 2^53 on a float may stand for another number than the one that was written."""
    error = rejected(f'{{"history": [{text}]}}'.encode())
    assert (error.status, error.problem.argument, error.problem.rule) == (
        422,
        "history[0]",
        "must be an id: a string or an integer",
    )


def test_fractions_stay_where_they_are_meant() -> None:
    body = b'{"history": [1.0], "where": {"price": 5.0, "sizes": [1.0]}}'
    query = parse(body)
    assert type(query.where["price"]) is type(query.where["sizes"][0]) is float


LOOKING_UP, MAY_GO_ON = threading.Event(), threading.Event()


def slow_kind() -> type:
    """The type of a field that takes a while to look up."""
    LOOKING_UP.set()
    assert MAY_GO_ON.wait(60)
    return int


class Inner(msgspec.Struct):
    x: slow_kind()  # type: ignore[valid-type]


class Outer(msgspec.Struct):
    inner: Inner
    y: int


def test_no_decoder_is_handed_out_while_another_thread_looks_up_its_fields() -> None:
    """msgspec would hand out one that crashes the process."""
    found = []
    threads = [threading.Thread(target=lambda: found.append(make_decoder(Outer))) for _ in range(2)]
    threads[0].start()
    assert LOOKING_UP.wait(60)
    threads[1].start()
    threads[1].join(0.2)
    waited = not found
    MAY_GO_ON.set()
    for thread in threads:
        thread.join(60)
    assert waited
    assert [one.decode(b'{"inner": {"x": 1}, "y": 2}') for one in found] == 2 * [Outer(Inner(1), 2)]
