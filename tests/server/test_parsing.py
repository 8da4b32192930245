"""Bytes to requests: what is wrong is named with its field, its value and the rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathdex.server.errors import RequestError
from pathdex.server.limits import ServerLimits
from pathdex.server.parsing import read_events, read_explain, read_queries, read_similar, read_why_not
from pathdex.server.schemas import Event, Query

LIMITS = ServerLimits(
    max_history=3, max_n=20, max_beam=30, max_candidates=40, max_filter=2, max_batch=2, max_id_length=5, max_explained=4
)
IDS = "must be a list of ids (text or whole numbers)"
FIT = "must fit in 64 bits; send it as text"
COUNT = "must be a whole number of at least 1"
LESS = "ask for less, or have the server's limit raised"
FEWER = "send fewer, or have the server's limit raised"
EXPLAIN = "ask for fewer items or no explanations"
SUBJECT = "exactly one of history and user must be given; send one of them"
GIVEN = "must be given: send user and items, or a list of both as events"
LONG = "must have at most 5 characters"


EVENT = {"user": 1, "items": []}


def refusal(read: Any, body: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        read(body if isinstance(body, bytes) else json.dumps(body).encode(), LIMITS)
    return caught.value


def test_a_query_has_defaults() -> None:
    [query], many = read_queries(b'{"history": [1, "a"]}', LIMITS)
    assert not many
    assert (query.history, query.n, query.exclude_seen, query.deny, query.explain) == ([1, "a"], 10, True, [], False)
    assert (query.user, query.beam, query.candidates, query.allow, query.where) == (None,) * 5


def test_many_queries_come_as_they_are() -> None:
    queries, many = read_queries(b'{"queries": [{"history": []}, {"user": 7, "n": 2}]}', LIMITS)
    assert many
    assert queries == [Query(history=[]), Query(user=7, n=2)]
    assert read_queries(b'{"queries": []}', LIMITS) == ([], True)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"history": [NaN]}',
        b'{"history": [Infinity]}',
        b"{'history': []}",
        b'{"history": []} {}',
        b'{"history": ["\xff"]}',
        b'{"history": ["\\ud800"]}',
        b'\xef\xbb\xbf{"history": []}',
        b'{"where": {"a": ' + b"[" * 100_000,
    ],
    ids=range(10),
)
def test_what_is_no_json_is_400(body: bytes) -> None:
    problem = refusal(read_queries, body)
    assert problem.status == 400
    assert str(problem).startswith(("the body is not JSON: ", "the body is nested too deeply; send a plain object"))


def test_deep_nesting_is_refused() -> None:
    body = b'{"where": ' + b'{"a":' * 3000 + b"1" + b"}" * 3001
    assert str(refusal(read_queries, body)) == "the body is nested too deeply; send a plain object"


@pytest.mark.parametrize(
    ("field", "value", "shown", "rule"),
    [
        ("n", 0, 0, f"{COUNT}; ask for one item or more"),
        ("n", 2.5, 2.5, f"{COUNT}; ask for one item or more"),
        ("n", True, True, f"{COUNT}; ask for one item or more"),
        ("n", "3", "3", f"{COUNT}; ask for one item or more"),
        ("n", None, None, f"{COUNT}; ask for one item or more"),
        ("n", -(10**30), str(-(10**30)), f"{COUNT}; ask for one item or more"),
        ("n", 21, 21, f"must be at most 20; {LESS}"),
        ("beam", 0, 0, f"{COUNT}; leave it out for the model's own"),
        ("beam", 31, 31, f"must be at most 30; {LESS}"),
        ("candidates", -1, -1, f"{COUNT}; leave it out for no budget"),
        ("candidates", 41, 41, f"must be at most 40; {LESS}"),
        ("history", "abc", "abc", f"{IDS}, oldest first"),
        ("history", [1, 2, 3, 4], "4 ids", f"must be at most 3; {FEWER}"),
        ("allow", [1, 2, 3], "3 ids", f"must be at most 2; {FEWER}"),
        ("allow", {}, "{}", f"{IDS}; leave it out to allow all items"),
        ("deny", [1, 2, 3], "3 ids", f"must be at most 2; {FEWER}"),
        ("where", [], "[]", 'must be an object of conditions by column, such as {"category": ["a", "b"]}'),
        ("exclude_seen", 1, 1, "must be true or false"),
        ("explain", "yes", "yes", "must be true or false"),
        ("user", 1.5, 1.5, "must be an id: text or a whole number"),
    ],
)
def test_a_wrong_field_is_named_with_its_value_and_rule(field: str, value: Any, shown: Any, rule: str) -> None:
    query = {"history": [], field: value}
    for place, body in (("", query), ("queries[1].", {"queries": [{"history": []}, query]})):
        problem = refusal(read_queries, body)
        assert problem.status == 422
        assert (problem.error.field, problem.error.value, problem.error.rule) == (place + field, shown, rule)
        assert str(problem).startswith(f"{place}{field}=")
        assert str(problem).endswith(f": {rule}")


@pytest.mark.parametrize(
    ("body", "field", "value", "rule"),
    [
        ({"history": [1.5]}, "history[0]", 1.5, f"{IDS}, oldest first"),
        ({"history": ["a", None]}, "history[1]", None, f"{IDS}, oldest first"),
        ({"history": ["a", "bcdefg"]}, "history[1]", "bcdefg", "must have at most 5 characters"),
        ({"history": [2**63]}, "history[0]", str(2**63), FIT),
        ({"history": [-(2**63) - 1]}, "history[0]", str(-(2**63) - 1), FIT),
        ({"history": [], "deny": [True]}, "deny[0]", True, IDS),
        ({"history": [], "n": 5, "explain": True}, "n", 5, f"must be at most 4 with explain; {EXPLAIN}"),
        ({}, "history", None, SUBJECT),
        ({"history": [1], "user": 1}, "history", "[1]", SUBJECT),
        ({"user": "abcdef"}, "user", "abcdef", "must have at most 5 characters"),
        ({"queries": 3}, "queries", 3, "must be a list of queries"),
        ({"queries": [{}, {}, {}]}, "queries", "3 of them", "must be at most 2; send them in parts"),
    ],
)
def test_a_wrong_part_is_named_with_its_value_and_rule(body: Any, field: str, value: Any, rule: str) -> None:
    problem = refusal(read_queries, body)
    assert problem.status == 422
    assert (problem.error.field, problem.error.value, problem.error.rule) == (field, value, rule)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "the body is no JSON object (Expected `object`, got `array`); send one JSON object"),
        (None, "the body is no JSON object (Expected `object`, got `null`); send one JSON object"),
        ({"histroy": []}, "histroy: is not a field of this request; leave it out"),
        ({"queries": [{"nn": 1}]}, "queries[0].nn: is not a field of this request; leave it out"),
        ({"queries": [], "n": 5}, "queries: must stand alone; put n, filters and all other fields into each query"),
    ],
)
def test_a_wrong_form_is_said(body: Any, message: str) -> None:
    assert str(refusal(read_queries, body)) == message


def test_the_items_of_many_answers_count_together() -> None:
    limits = ServerLimits(max_results=10)
    assert read_queries(b'{"queries": [{"history": [], "n": 5}, {"history": [], "n": 5}]}', limits)[1]
    with pytest.raises(RequestError, match=r"queries\[\]\.n=11: must be at most 10; ask for less"):
        read_queries(b'{"queries": [{"history": [], "n": 5}, {"history": [], "n": 6}]}', limits)


def test_many_explanations_count_together() -> None:
    body = {"queries": [{"history": [], "n": 3, "explain": True}] * 2}
    assert refusal(read_queries, body).error.value == 6


def test_a_long_value_is_cut() -> None:
    problem = refusal(read_queries, {"history": [], "n": "x" * 5000})
    assert len(problem.error.value) < 250
    assert len(str(problem)) < 400


@pytest.mark.parametrize(
    ("read", "body", "message"),
    [
        (read_similar, {}, "item: must be given"),
        (read_similar, {"item": None}, "item=None: must be an id: text or a whole number"),
        (read_similar, {"item": 2**64}, f"item={2**64}: {FIT}"),
        (read_similar, {"item": 1, "n": 99}, f"n=99: must be at most 20; {LESS}"),
        (read_explain, {"history": []}, "item: must be given"),
        (read_explain, {"item": 1}, "history=None: exactly one of history and user must be given; send one of them"),
        (read_explain, {"item": "abcdef", "history": []}, "item='abcdef': must have at most 5 characters"),
        (read_explain, {"item": 1, "history": [], "beam": 99}, f"beam=99: must be at most 30; {LESS}"),
        (read_why_not, {"item": 1, "history": [], "n": 99}, f"n=99: must be at most 20; {LESS}"),
        (read_events, {}, f"user=None: {GIVEN}"),
        (read_events, {"user": 1}, f"items=None: {GIVEN}"),
        (read_events, {"user": 1, "items": 5}, f"items=5: {IDS}, oldest first"),
        (read_events, {"user": 1, "items": [1, 2, 3, 4]}, f"items='4 ids': must be at most 3; {FEWER}"),
        (read_events, {"user": "abcdef", "items": []}, "user='abcdef': must have at most 5 characters"),
        (read_events, {"user": 1, "events": []}, "events='...': must stand alone; put user and items into each event"),
        (read_events, {"events": [{"user": 1}]}, "events[0].items: must be given"),
        (read_events, {"events": [{"user": 1, "items": ["abcdef"]}]}, f"events[0].items[0]='abcdef': {LONG}"),
        (read_events, {"events": [EVENT] * 3}, "events='3 of them': must be at most 2; send them in parts"),
    ],
)  # fmt: skip
def test_other_requests_name_what_is_wrong_too(read: Any, body: Any, message: str) -> None:
    problem = refusal(read, body)
    assert (problem.status, str(problem)) == (422, message)


def test_events_of_one_user_or_of_many() -> None:
    assert read_events(b'{"user": 1, "items": ["a"]}', LIMITS) == [Event(1, ["a"])]
    many = {"events": [{"user": 1, "items": ["a"]}, {"user": "b", "items": []}]}
    assert read_events(json.dumps(many).encode(), LIMITS) == [Event(1, ["a"]), Event("b", [])]
