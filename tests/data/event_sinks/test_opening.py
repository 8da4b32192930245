"""Which places are sinks, and appending in one call."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathdex.data.event_sinks import append_events, open_sink
from pathdex.data.events import Event
from pathdex.errors import ConfigError
from tests.data.event_sinks.conftest import RECORDS, read_back


def test_appending_in_one_call(tmp_path: Path) -> None:
    place = tmp_path / "events.jsonl"
    assert append_events(place, []) == 0
    assert append_events(place, iter(RECORDS)) == len(RECORDS)
    assert append_events(place, [Event(1, number) for number in range(2500)]) == 2500
    assert len(read_back(str(place), 2504)) == 2504


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("ftp://host", "the scheme ftp:// is unknown; use a .jsonl file or redis"),
        ("rediss:x://host", "the scheme rediss:x:// is unknown; did you mean 'rediss'"),
        ("events.csv", "events are appended as JSON lines, to a file that ends in .jsonl or .ndjson; rename it, or"),
        ("events.jsonl.gz", "events are appended as JSON lines"),
        ("-", "events are appended as JSON lines"),
    ],
)
def test_places_that_are_no_sinks(place: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        open_sink(place)
