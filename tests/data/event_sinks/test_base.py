"""Every sink keeps the contract: what was appended is read back in order, also after `close`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathdex.data.event_sinks import open_sink
from pathdex.data.event_sinks.base import CHUNK, EventSink
from pathdex.data.events import Event
from tests.data.event_sinks.conftest import RECORDS, read_back
from tests.data.event_sources.conftest import Broker
from tests.data.event_sources.test_nats_source import new_stream


@pytest.fixture(params=["file", "redis", "nats"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return str(tmp_path / "events.jsonl")
    broker: Broker = request.getfixturevalue(f"{request.param}_broker")
    return new_stream(broker) if request.param == "nats" else f"{broker.address}?stream={tmp_path.name}"


def test_records_are_read_back_in_order(place: str) -> None:
    sink: EventSink = open_sink(place)
    many = [Event(number, number + 1, float(number)) for number in range(CHUNK + 10)]
    sink.append(RECORDS)
    sink.append([])
    sink.append(many)
    sink.close()
    sink.append(RECORDS[:1])
    sink.close()
    sink.close()
    wanted = [*RECORDS, *many, RECORDS[0]]
    assert read_back(place, len(wanted)) == wanted
