"""NATS JetStream, against a real server."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nats
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nats.js.api import StreamConfig

from pathdex.data.event_sinks import append_events
from pathdex.data.event_sources import open_source
from pathdex.data.event_sources.base import EventSource
from pathdex.errors import ConfigError, DataError, MissingExtraError, ServerError
from tests.data.event_sources.conftest import (
    EVENTS,
    Broker,
    events_of,
    free_port,
    read_and_resume,
    read_until,
)

NUMBERS = itertools.count()


def ask(broker: Broker, work: Callable[[Any], Awaitable[Any]]) -> Any:
    """Use the broker's own client."""

    async def run() -> Any:
        client = await nats.connect(broker.address)
        try:
            return await work(client.jetstream())
        finally:
            await client.close()

    return asyncio.run(run())


def new_stream(broker: Broker, **options: Any) -> str:
    """The URL of an empty stream."""
    name = f"events{next(NUMBERS)}"
    ask(broker, lambda stream: stream.add_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **options)))
    return f"{broker.address}?stream={name}&subject={name}.all"


def stream_of(place: str) -> str:
    return place.partition("stream=")[2].partition("&")[0]


def opened(place: str, **options: Any) -> EventSource:
    source = open_source(place, **options)
    source.seek(None)
    return source


def test_events_come_in_order_and_are_acknowledged(nats_broker: Broker) -> None:
    place = new_stream(nats_broker)
    append_events(place, EVENTS)
    source = opened(place)
    assert source.lag() == len(EVENTS)
    first = source.read(25, 1)
    assert first is not None
    assert first.events == EVENTS[:25]
    assert source.lag() == len(EVENTS) - 25
    source.acknowledge(first.position)
    info = ask(nats_broker, lambda stream: stream.consumer_info(stream_of(place), "pathdex"))
    assert info.ack_floor.stream_seq == 25
    assert events_of(read_until(source, len(EVENTS) - 25)) == EVENTS[25:]
    source.close()
    again = opened(place)
    assert events_of(read_until(again, len(EVENTS) - 25)) == EVENTS[25:]
    again.close()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stops=st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=6))
def test_kills_lose_and_repeat_nothing(nats_broker: Broker, stops: list[tuple[int, bool]]) -> None:
    place = new_stream(nats_broker)
    append_events(place, EVENTS)
    assert read_and_resume(lambda: open_source(place), stops, len(EVENTS)) == EVENTS


def test_a_restart_of_nats_loses_and_repeats_nothing(nats_broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    place = new_stream(nats_broker)
    append_events(place, EVENTS[:30])
    source = opened(place)
    first = events_of(read_until(source, 10, size=10))
    with caplog.at_level(logging.WARNING, "pathdex.stream"):
        nats_broker.process.terminate()
        nats_broker.process.wait(10)
        batch = source.read(10, 0.15)
        assert batch is not None
        nats_broker.start()
        append_events(place, EVENTS[30:])
        rest = events_of(read_until(source, len(EVENTS) - len(first) - len(batch.events)))
    assert first + batch.events + rest == EVENTS
    assert "is reachable again" in caplog.text
    source.close()


def test_dropped_messages_are_counted(nats_broker: Broker) -> None:
    place = new_stream(nats_broker, max_msgs=20)
    append_events(place, EVENTS[:10])
    source = opened(place)
    first = read_until(source, 10)[-1]
    source.close()
    append_events(place, EVENTS[10:])
    again = open_source(place)
    again.seek(first.position)
    rest = read_until(again, 20)
    assert events_of(rest) == EVENTS[40:]
    assert sum(batch.lost for batch in rest) == 30
    again.close()


def test_a_deleted_consumer_is_created_again(nats_broker: Broker) -> None:
    place = new_stream(nats_broker)
    append_events(place, EVENTS[:10])
    source = opened(place)
    read_until(source, 10)
    ask(nats_broker, lambda stream: stream.delete_consumer(stream_of(place), "pathdex"))
    append_events(place, EVENTS[10:])
    assert events_of(read_until(source, 50)) == EVENTS[10:]
    source.close()


def test_malformed_messages_go_to_the_dead_letters(nats_broker: Broker, letters: Path) -> None:
    place = new_stream(nats_broker)
    subject = place.partition("subject=")[2]
    ask(nats_broker, lambda stream: stream.publish(subject, b"nonsense"))
    append_events(place, EVENTS[:2])
    source = opened(place, dead_letters=letters)
    batches = read_until(source, 2)
    assert events_of(batches) == EVENTS[:2]
    assert sum(batch.malformed for batch in batches) == 1
    assert json.loads(letters.read_text())["position"] == f"{stream_of(place)}/1"
    source.close()


def test_a_stream_that_was_created_again(nats_broker: Broker) -> None:
    place = new_stream(nats_broker)
    append_events(place, EVENTS[:5])
    source = opened(place)
    position = read_until(source, 5)[-1].position
    source.close()
    name = stream_of(place)
    ask(nats_broker, lambda stream: stream.delete_stream(name))
    ask(nats_broker, lambda stream: stream.add_stream(StreamConfig(name=name, subjects=[f"{name}.>"])))
    again = open_source(place)
    with pytest.raises(DataError, match="is not the one that was read: it was created"):
        again.seek(position)
    again.close()


def test_a_stream_that_lost_its_end(nats_broker: Broker) -> None:
    place = new_stream(nats_broker)
    append_events(place, EVENTS[:5])
    source = opened(place)
    position = read_until(source, 5)[-1].position
    with pytest.raises(DataError, match="ends at message 5, but 9 was read: it lost its last messages; restore"):
        source.seek({**position, "sequence": 9})
    source.close()


def test_errors_of_opening(nats_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"needs stream= in its parameters"):
        open_source(nats_broker.address)
    source = open_source(f"{nats_broker.address}?stream=nowhere")
    with pytest.raises(DataError, match=r"has no stream 'nowhere' .*; create it: nats stream add nowhere"):
        source.seek(None)
    source.close()
    monkeypatch.setattr("pathdex.data.event_sources.nats_source.SECONDS", 0.5)
    with pytest.raises(ServerError, match=r"nats://127.0.0.1:\d+: .*; check that NATS is running and reachable"):
        open_source(f"nats://127.0.0.1:{free_port()}?stream=events")
    monkeypatch.setattr("pathdex.system.Feature.available", False)
    with pytest.raises(MissingExtraError, match=r"needs nats; install it with: pip install 'pathdex\[nats\]'"):
        open_source("nats://localhost?stream=events")
