"""Item changes: every record is accepted or refused with a reason, and attributes become comparable features."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.data.event_values import BrokenRuleError
from pathdex.data.events import Event, EventParser, Malformed, StreamRecord, encode_record
from pathdex.data.item_changes import (
    MAX_FEATURE_LENGTH,
    AddItem,
    RemoveItem,
    check_attributes,
    features,
    parse_item_change,
)


def test_changes_are_parsed() -> None:
    assert parse_item_change({"remove_item": 12.0, "by": "ada"}) == RemoveItem(12)
    assert parse_item_change({"add_item": "x"}) == AddItem("x")
    assert parse_item_change({"add_item": "x", "like": None, "attributes": None}) == AddItem("x")
    given = {"add_item": "x", "like": ["a", 7], "attributes": {"genre": ["drama", None], "year": 1999, "none": None}}
    assert parse_item_change(given) == AddItem("x", ("a", 7), {"genre": ["drama"], "year": 1999})


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"add_item": "a", "remove_item": "a"}, "add_item and remove_item exclude each other; write two records"),
        ({"remove_item": None}, "remove_item must be text or a whole number, not None"),
        ({"add_item": ""}, "add_item is empty"),
        ({"add_item": 1, "like": "a"}, "like must be a list of ids, not 'a'"),
        ({"add_item": 1, "like": [""]}, "like is empty"),
        ({"add_item": 1, "like": [1] * 101}, "like has 101 ids; at most 100 are allowed"),
        ({"add_item": 1, "attributes": ["drama"]}, "attributes must map columns to values, not ['drama']"),
        ({"add_item": 1, "attributes": dict.fromkeys(map(str, range(65)), 1)}, "attributes has 65 columns; at most 64"),
        ({"add_item": 1, "attributes": {"a": [1] * 257}}, "attributes: 'a' has 257 values; at most 256"),
        (
            {"add_item": 1, "attributes": {"a": {"b": 1}}},
            "attributes: 'a' must hold text, numbers or booleans, not {'b': 1}",
        ),
        ({"add_item": 1, "attributes": {"a": [[1]]}}, "attributes: 'a' must hold text, numbers or booleans, not [1]"),
        ({"add_item": 1, "attributes": {"a": float("inf")}}, "attributes: 'a' must hold text, numbers or booleans"),
        ({"add_item": 1, "attributes": {"a": "\ud800"}}, "attributes: 'a' is not valid Unicode text"),
        ({"add_item": 1, "attributes": {"\ud800": 1}}, "attributes is not valid Unicode text"),
    ],
)
def test_a_malformed_change_has_a_reason(record: dict[str, Any], why: str) -> None:
    found = EventParser().parse_json(json.dumps(record))
    assert isinstance(found, Malformed)
    assert found.reason.startswith(why)


def test_a_column_must_be_text() -> None:
    with pytest.raises(BrokenRuleError, match="the column 7 must be text"):
        check_attributes({7: "a"})


def test_numpy_scalars_are_values() -> None:
    assert check_attributes({"year": np.int64(1999)}) == {"year": 1999}


def test_features_are_single_values() -> None:
    found = features({"genre": " Drama|crime||DRAMA", "year": 1999, "new": True, "tags": ["a", "b|c"], "price": 9.99})
    assert found == ("genre=crime", "genre=drama", "new=true", "tags=a", "tags=b", "tags=c", "year=1999")
    assert features({"year": 1999.0}) == ("year=1999",)
    assert features({"text": "x" * (MAX_FEATURE_LENGTH + 1), "empty": []}) == ()


ids = st.text(min_size=1, max_size=9) | st.integers(-(2**63), 2**63 - 1)
values = st.text(max_size=9) | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
records = st.one_of(
    st.builds(Event, ids, ids, st.none() | st.floats(0, 4e9), st.floats(0, 9)),
    st.builds(RemoveItem, ids),
    st.builds(
        AddItem,
        ids,
        st.lists(ids, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=5), values | st.lists(values, max_size=3), max_size=3),
    ),
)


@given(record=records)
def test_what_is_written_is_read(record: StreamRecord) -> None:
    assert EventParser().parse_json(encode_record(record)) == record
