"""Events: every value is accepted or refused with a reason."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.data.events import CACHED_LAYOUTS, MAX_EVENT_BYTES, Event, EventParser, Malformed
from pathdex.errors import ConfigError


def reason(found: Event | Malformed) -> str:
    assert isinstance(found, Malformed)
    return found.reason


def event(**fields: Any) -> dict[str, Any]:
    return {"user": "ada", "item": 7, **fields}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("ada", "ada"),
        (12, 12),
        (12.0, 12),
        ("12", "12"),
        (-(2**63), -(2**63)),
        (np.int32(4), 4),
        (" ", " "),
        ("ä", "ä"),
    ],
)
def test_an_id_is_text_or_a_whole_number(given: Any, read: Any) -> None:
    assert EventParser().parse(event(user=given)) == Event(read, 7)
    assert EventParser().parse({"user": 1, "item": given}) == Event(1, read)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (True, "user must be text or a whole number, not True"),
        (12.5, "user must be text or a whole number, not 12.5"),
        (float("nan"), "user must be text or a whole number, not nan"),
        (None, "user: 'user' is missing or null"),
        ("", "user is empty"),
        ("x" * 257, "user has 257 characters; at most 256 are allowed"),
        (2**63, "user is past 2^63; write such ids as text"),
        (1e300, "user is past 2^63; write such ids as text"),
        (["a"], "user must be text or a whole number, not ['a']"),
        ("\ud800", "user is not valid Unicode text"),
    ],
)
def test_a_bad_id_has_a_reason(given: Any, why: str) -> None:
    assert reason(EventParser().parse(event(user=given))) == why


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (None, None),
        ("", None),
        (5, 5.0),
        (-1.5, -1.5),
        ("978300760", 978300760.0),
        ("1970-01-02", 86400.0),
        ("1970-01-01T01:00:00", 3600.0),
        ("1970-01-01T01:00:00Z", 3600.0),
        ("1970-01-01 02:00:00+01:00", 3600.0),
        (datetime(1970, 1, 1, 1), 3600.0),
        (datetime(1970, 1, 1, 1, tzinfo=timezone.utc), 3600.0),
        (date(1970, 1, 2), 86400.0),
    ],
)
def test_a_time_is_seconds_or_a_date(given: Any, seconds: float | None) -> None:
    assert EventParser().parse(event(time=given)) == Event("ada", 7, seconds)


@pytest.mark.parametrize("given", ["yesterday", True, float("inf"), "nan", [5], "9" * 400 + ".5e999"])
def test_a_bad_time_has_a_reason(given: Any) -> None:
    assert "time must be seconds since 1970 or ISO 8601, not" in reason(EventParser().parse(event(time=given)))


@pytest.mark.parametrize("given", [1_700_000_000_000, -(2.0**32), "9999-01-01", 1e308])
def test_a_time_in_milliseconds_is_a_mistake(given: Any) -> None:
    assert "before the year 2106" in reason(EventParser().parse(event(time=given)))


@pytest.mark.parametrize(("given", "weight"), [(None, 1.0), ("", 1.0), (0, 0.0), ("2.5", 2.5), (3, 3.0)])
def test_a_weight_is_a_number_of_at_least_zero(given: Any, weight: float) -> None:
    assert EventParser().parse(event(weight=given)) == Event("ada", 7, None, weight)


@pytest.mark.parametrize("given", [-1, float("nan"), float("inf"), "much", False])
def test_a_bad_weight_has_a_reason(given: Any) -> None:
    assert "weight must be a number of at least 0, not" in reason(EventParser().parse(event(weight=given)))


def test_keys_are_found_by_common_names_and_others_ignored() -> None:
    record = {"userId": 1, "movieId": 2, "timestamp": 3, "Weight": 4, "rating": 5, "page": {"a": 1}}
    assert EventParser().parse(record) == Event(1, 2, 3.0, 4.0)
    assert reason(EventParser().parse({"who": 1})).startswith("no user was found among its keys: ['who']; name the key")


def test_named_keys() -> None:
    parser = EventParser(user="who", item="user", time="at", weight="much")
    assert parser.parse({"who": 1, "user": 2, "at": 3, "much": 4, "time": 9}) == Event(1, 2, 3.0, 4.0)
    assert reason(parser.parse({"user": 2})) == "user: 'who' is missing or null"
    assert reason(EventParser(user="item").parse({"item": 2})).startswith("no item was found")
    with pytest.raises(ConfigError, match=r"one key is named for two roles \(user='a', item='a'\); name one for each"):
        EventParser(user="a", item="a")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"nonsense", "it is not JSON (Expecting value at character 0)"),
        (b"", "it is not JSON (Expecting value at character 0)"),
        (b"[1, 2]", "it must be a JSON object, not [1, 2]"),
        (b"\xff\xfe", "it is not UTF-8 text (byte 0)"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"user": 1' + b"0" * 5000 + b', "item": 1}', "it holds a number of more than 4,300 digits"),
        (
            b'{"user": 1, "item": 2, "time": 1' + b"0" * 399 + b"}",
            "time must be seconds since 1970 or ISO 8601, not a number of 400 digits",
        ),
        (
            b'{"user": 1, "item": 2, "weight": -' + b"9" * 400 + b"}",
            "weight must be a number of at least 0, not a number of 400 digits",
        ),
        (b" " * (MAX_EVENT_BYTES + 1), "it has 1,048,577 bytes; at most 1,048,576 are allowed"),
    ],
)
def test_what_is_not_a_json_object_has_a_reason(raw: bytes, why: str) -> None:
    assert reason(EventParser().parse_json(raw)).startswith(why)


def test_text_values_become_integers_only_if_they_print_the_same() -> None:
    for value, read in (("12", 12), ("-3", -3), ("007", "007"), ("1_0", "1_0"), ("--1", "--1"), ("9" * 19, "9" * 19)):
        assert EventParser().parse({"user": value, "item": "x"}, text=True) == Event(read, "x")


def test_memory_of_layouts_is_bounded() -> None:
    parser = EventParser()
    for number in range(CACHED_LAYOUTS + 10):
        parser.parse(event(**{f"key {number}": 1}))
    assert len(parser._layouts) <= CACHED_LAYOUTS


ids = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), st.integers(-(2**63), 2**63 - 1)
)
times = st.none() | st.floats(-4e9, 4e9)


@given(st.builds(Event, ids, ids, times, st.floats(0, 1e6)))
def test_an_event_survives_json(one: Event) -> None:
    assert EventParser().parse_json(json.dumps(one._asdict())) == one


@given(st.binary(max_size=60))
def test_any_bytes_are_an_event_or_have_a_reason(raw: bytes) -> None:
    found = EventParser().parse_json(raw)
    assert isinstance(found, Event) or found.reason
