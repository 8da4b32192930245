"""One event per line."""

from __future__ import annotations

import pytest

from pathdex.data.event_sources.line_buffer import Line
from pathdex.data.event_sources.line_formats import DelimitedLines, JsonEventLines
from pathdex.data.events import MAX_EVENT_BYTES, Event, EventParser, Malformed
from pathdex.errors import DataError


def line(raw: bytes) -> Line:
    return Line(raw, 0, len(raw) + 1, len(raw))


def test_json_lines() -> None:
    format = JsonEventLines(EventParser())
    assert format.parse(line(b'{"user": 1, "item": "a"}\r')) == Event(1, "a")
    assert isinstance(format.parse(line(b"{")), Malformed)
    assert isinstance(format.parse(Line(b"{", 0, 1, MAX_EVENT_BYTES + 1)), Malformed)


def test_csv_with_a_header() -> None:
    format = DelimitedLines(EventParser(), ",")
    format.read_header(line(b'\xef\xbb\xbfuser_id,"item_id",ts,weight\r'), "a.csv")
    assert format.parse(line(b'7,"a, ""b""",,2\r')) == Event(7, 'a, "b"', None, 2.0)
    assert format.parse(line(b"007,12,5,")) == Event("007", 12, 5.0)
    for raw, why in (
        (b"1,2", "it has 2 fields; the header has 4"),
        (b'1,"2', "it is not CSV (unexpected end of data)"),
        (b"\xff,1,2,3", "it is not UTF-8 text (byte 0)"),
        (b",1,2,3", "user is empty"),
    ):
        assert format.parse(line(raw)) == Malformed(why)
    assert isinstance(format.parse(Line(b"1", 0, 1, MAX_EVENT_BYTES + 1)), Malformed)


def test_a_header_without_the_columns() -> None:
    with pytest.raises(DataError, match=r"no item column found in a.tsv; its columns are: user, weight"):
        DelimitedLines(EventParser(), "\t").read_header(line(b"user\tweight"), "a.tsv")
    with pytest.raises(DataError, match="no such column; its columns are: user, item"):
        DelimitedLines(EventParser(weight="w"), ",").read_header(line(b"user,item"), "a.csv")
