"""Limits of requests, and fields that go together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathdex.server.errors import RequestError
from pathdex.server.limits import ServerLimits
from pathdex.server.route import Route
from pathdex.server.routes import events, explain, recommend, similar, why_not

LIMITS = ServerLimits(
    max_history=3, max_n=20, max_beam=30, max_candidates=40, max_filter=2, max_batch=2, max_id_length=5, max_explained=4
)
LESS = "request less, or raise the server's limit"
FEWER = "send fewer, or raise the server's limit"
FIT = ("must fit in 64 bits", "send it as a string")
SUBJECT = ("exactly one of history and user is required", "send one")
BATCH = "split them over several requests"
EXPLAINED = ("must be at most 4 with explain", "request fewer items, or no explanations")
GIVEN = ("is required", "send user and items, or a list of both as events")
LONG = ("must have at most 5 characters", None)
EVENT = {"user": 1, "items": []}


def parse(route: Route[Any, Any], body: Any, limits: ServerLimits = LIMITS) -> Any:
    return route.parse(json.dumps(body).encode(), limits)


@pytest.mark.parametrize(
    ("field", "value", "shown", "rule", "remedy"),
    [
        ("n", 21, 21, "must be at most 20", LESS),
        ("beam", 31, 31, "must be at most 30", LESS),
        ("candidates", 41, 41, "must be at most 40", LESS),
        ("history", [1, 2, 3, 4], "4 ids", "must have at most 3", FEWER),
        ("allow", [1, 2, 3], "3 ids", "must have at most 2", FEWER),
        ("deny", [1, 2, 3], "3 ids", "must have at most 2", FEWER),
    ],
)
def test_limits_of_a_query(field: str, value: Any, shown: Any, rule: str, remedy: str) -> None:
    query = {"history": [], field: value}
    for place, body in (("", query), ("queries[1].", {"queries": [{"history": []}, query]})):
        with pytest.raises(RequestError) as caught:
            parse(recommend, body)
        problem = caught.value.problem
        assert caught.value.status == 422
        assert (problem.argument, problem.value, problem.rule, problem.remedy) == (place + field, shown, rule, remedy)


@pytest.mark.parametrize(
    ("route", "body", "field", "value", "rule", "remedy"),
    [
        (recommend, {"history": ["a", "bcdefg"]}, "history[1]", "bcdefg", *LONG),
        (recommend, {"history": [2**63]}, "history[0]", 2**63, *FIT),
        (recommend, {"history": [-(2**63) - 1]}, "history[0]", -(2**63) - 1, *FIT),
        (recommend, {"history": [], "n": 5, "explain": True}, "n", 5, *EXPLAINED),
        (recommend, {"queries": [{"history": [], "n": 3, "explain": True}] * 2}, "n", 6, *EXPLAINED),
        (recommend, {}, "history", None, *SUBJECT),
        (recommend, {"history": [1], "user": 1}, "history", [1], *SUBJECT),
        (recommend, {"user": "abcdef"}, "user", "abcdef", *LONG),
        (recommend, {"queries": [{}] * 3}, "queries", "3 queries", "must have at most 2", BATCH),
        (similar, {"item": 2**64}, "item", 2**64, *FIT),
        (similar, {"item": 1, "n": 99}, "n", 99, "must be at most 20", LESS),
        (explain, {"item": 1}, "history", None, *SUBJECT),
        (explain, {"item": "abcdef", "history": []}, "item", "abcdef", *LONG),
        (explain, {"item": 1, "history": [], "beam": 99}, "beam", 99, "must be at most 30", LESS),
        (why_not, {"item": 1, "history": [], "n": 99}, "n", 99, "must be at most 20", LESS),
        (events, {}, "user", None, *GIVEN),
        (events, {"user": 1}, "items", None, *GIVEN),
        (events, {"user": 1, "items": [1, 2, 3, 4]}, "items", "4 ids", "must have at most 3", FEWER),
        (events, {"user": "abcdef", "items": []}, "user", "abcdef", *LONG),
        (events, {"events": [{"user": 1, "items": ["abcdef"]}]}, "events[0].items[0]", "abcdef", *LONG),
        (events, {"events": [EVENT] * 3}, "events", "3 events", "must have at most 2", BATCH),
    ],
)
def test_rules(route: Route[Any, Any], body: Any, field: str, value: Any, rule: str, remedy: str | None) -> None:
    with pytest.raises(RequestError) as caught:
        parse(route, body)
    problem = caught.value.problem
    assert (problem.argument, problem.value, problem.rule, problem.remedy) == (field, value, rule, remedy)


@pytest.mark.parametrize(
    ("route", "body", "message"),
    [
        (
            recommend,
            {"queries": [], "n": 5},
            "queries='0 queries': must be the only field; put n, filters and the rest in each query",
        ),
        (events, {"user": 1, "events": []}, "events='0 events': must be the only field; put user and items in each"),
    ],
)
def test_a_batch_must_be_the_only_field(route: Route[Any, Any], body: Any, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse(route, body)
    assert str(caught.value).startswith(message)


def test_the_items_of_a_batch_count_together() -> None:
    limits = ServerLimits(max_results=10)
    assert parse(recommend, {"queries": [{"history": [], "n": 5}] * 2}, limits)
    with pytest.raises(RequestError, match=r"queries\[\]\.n=11: must be at most 10; request less"):
        parse(recommend, {"queries": [{"history": [], "n": 5}, {"history": [], "n": 6}]}, limits)


def test_valid_requests() -> None:
    assert parse(recommend, {"queries": []}).queries == []
    assert parse(events, {"user": 1, "items": ["a"]}).items == ["a"]
    assert len(parse(events, {"events": [EVENT, {"user": "b", "items": [1]}]}).events) == 2
