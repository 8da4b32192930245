"""Decoding with dead letters, and positions of the right source."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathdex.data.event_sources.base import EventDecoder, check_position, position_value
from pathdex.data.event_sources.dead_letters import DeadLetters
from pathdex.data.events import Event, EventParser
from pathdex.errors import DataError


def test_malformed_records_are_counted_and_written(letters: Path) -> None:
    parser = EventParser()
    decoder = EventDecoder(parser, DeadLetters(letters))
    records = [("a:0", b'{"user": 1, "item": 2}'), ("a:1", b"x"), ("a:2", b'{"user": 3, "item": 4}')]
    assert decoder.decode(records, parser.parse_json) == ([Event(1, 2), Event(3, 4)], 1)
    decoder.close()
    assert '"position": "a:1"' in letters.read_text()


def test_a_position_names_its_source() -> None:
    check_position({"source": "redis", "stream": "a"}, "redis", stream="a")
    for wrong in ({"source": "nats"}, {}, None):
        with pytest.raises(DataError, match=r"the position is of another kind of source, not of redis; continue with"):
            check_position(wrong, "redis")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"the position is of the stream 'b', not of 'a'; continue with that stream"):
        check_position({"source": "redis", "stream": "b"}, "redis", stream="a")


@pytest.mark.parametrize("value", [None, "3", -1, True, 2.5])
def test_a_position_with_a_wrong_value(value: object) -> None:
    with pytest.raises(DataError, match=r"offset must be a int, not .*; restore the checkpoint"):
        position_value({"offset": value}, "offset", int)
    assert position_value({"offset": 3}, "offset", int) == 3
