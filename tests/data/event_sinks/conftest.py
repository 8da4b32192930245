"""The brokers of the sources, and records of every kind."""

from __future__ import annotations

from pathdex.data.event_sources import open_source
from pathdex.data.events import Event, StreamRecord
from pathdex.data.item_changes import AddItem, RemoveItem
from tests.data.event_sources.conftest import nats_broker, read_until, redis_broker

__all__ = ["RECORDS", "nats_broker", "read_back", "redis_broker"]

RECORDS: list[StreamRecord] = [
    Event("ada", 7),
    AddItem("x", ("a", 7), {"genre": "drama|crime", "year": 1999}),
    Event(1, "x", 2.5, 0.5),
    RemoveItem("x"),
]


def read_back(place: str, count: int) -> list[StreamRecord]:
    """What a source reads from the place."""
    source = open_source(place)
    source.seek(None)
    found = [one for batch in read_until(source, count) for one in batch.events]
    source.close()
    return found
