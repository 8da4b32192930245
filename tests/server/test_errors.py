"""Errors of the API are written from fields."""

from __future__ import annotations

import errno
import json
import sqlite3
from typing import Any

import pytest

from pathdex.errors import BundleError, Problem, QueryError, StorageError
from pathdex.server.errors import RequestError, from_library, invalid, is_full, json_value, unavailable


def test_the_body_has_the_fields_of_the_problem() -> None:
    error = RequestError(422, Problem("must be positive", "n", 0, "request one"))
    assert json.loads(error.body("34031d112ca9")) == {
        "error": {
            "type": "QueryError",
            "message": "n=0: must be positive; request one",
            "field": "n",
            "value": 0,
            "rule": "must be positive",
            "remedy": "request one",
        },
        "model": "34031d112ca9",
    }


def test_a_query_error_keeps_its_fields() -> None:
    error = from_library(QueryError("must exist", argument="where", value={"a: b": 1}, remedy="check; it"))
    assert (error.status, error.problem) == (422, Problem("must exist", "where", {"a: b": 1}, "check; it"))
    assert json.loads(error.body())["error"]["value"] == {"a: b": 1}


def test_other_library_errors_are_503(caplog: pytest.LogCaptureFixture) -> None:
    error = from_library(BundleError("/models/a is damaged"))
    assert (error.status, error.type) == (503, "ServerError")
    assert str(error) == "the server cannot answer this request now; see its log"
    assert b"/models" not in error.body()
    assert "/models/a is damaged" in caplog.text


def test_a_full_disk_is_recognised() -> None:
    def wrapped(cause: Exception) -> StorageError:
        try:
            raise StorageError("cannot write") from cause
        except StorageError as error:
            return error

    assert is_full(wrapped(OSError(errno.ENOSPC, "No space left on device")))
    assert is_full(wrapped(sqlite3.OperationalError("database or disk is full")))
    assert not is_full(wrapped(OSError(errno.EACCES, "Permission denied")))
    assert not is_full(None)


def test_invalid_and_unavailable() -> None:
    assert (invalid("id", 1, "is unknown", status=404).status, str(invalid("id", 1, "is unknown"))) == (
        404,
        "id=1: is unknown",
    )
    busy = unavailable("busy", "try again later", 429)
    assert (busy.status, busy.type, busy.headers) == (429, "ServerError", ((b"retry-after", b"1"),))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        (2**62, 2**62),
        (2**64, str(2**64)),
        ("a" * 200, "a" * 200),
        ([1, "a"], [1, "a"]),
        ((1, 2), (1, 2)),
        ({"a": [None]}, {"a": [None]}),
        (object, repr(object)),
    ],
)
def test_a_short_value_is_sent_as_json(value: Any, shown: Any) -> None:
    assert json_value(value) == shown


@pytest.mark.parametrize("value", ["x" * 5000, [1] * 5000, {"a": "x" * 5000}])
def test_a_long_value_is_cut(value: Any) -> None:
    assert len(json_value(value)) <= 203
    assert len(str(invalid("n", value, "is wrong"))) < 250
