"""Appending events. The tests of the sources read them back from real brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathdex.data.event_sinks import append_events
from pathdex.data.events import Event
from pathdex.errors import ConfigError, ServerError, StorageError
from tests.data.event_sources.conftest import free_port


def test_a_file_grows(tmp_path: Path) -> None:
    place = tmp_path / "events.jsonl"
    assert append_events(place, [Event("ada", 7)]) == 1
    assert append_events(place, iter([Event(1, "x", 2.5, 0.5), Event(1, "y")])) == 2
    assert place.read_text().splitlines() == [
        '{"user": "ada", "item": 7}',
        '{"user": 1, "item": "x", "time": 2.5, "weight": 0.5}',
        '{"user": 1, "item": "y"}',
    ]


def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match=r"cannot append to .*: No such file or directory; choose another path"):
        append_events(tmp_path / "no" / "events.jsonl", [Event(1, 2)])
    with pytest.raises(ConfigError, match=r"the scheme ftp:// is unknown; use a .jsonl file or redis"):
        append_events("ftp://host", [])
    with pytest.raises(ServerError, match="check that Redis is running and reachable"):
        append_events(f"redis://127.0.0.1:{free_port()}?stream=events", [Event(1, 2)])
    with pytest.raises(ConfigError, match="needs subject="):
        append_events("nats://127.0.0.1?stream=events", [Event(1, 2)])
    for module in ("nats", "kafka"):
        monkeypatch.setattr(f"pathdex.data.event_sources.{module}_source.SECONDS", 0.3)
    with pytest.raises(ServerError, match="check that NATS is running and has the subject"):
        append_events(f"nats://127.0.0.1:{free_port()}?subject=events", [Event(1, 2)])
    with pytest.raises(ServerError, match="1 events were not stored; check that Kafka is running"):
        append_events(f"kafka://127.0.0.1:{free_port()}/topic", [Event(1, 2)])
