"""NATS JetStream, against a real server that is restarted."""

from __future__ import annotations

import pytest

from pathdex.data.event_sinks.nats_sink import NatsSink
from pathdex.data.events import Event
from pathdex.errors import ConfigError, ServerError
from tests.data.event_sinks.conftest import read_back
from tests.data.event_sources.conftest import Broker, free_port
from tests.data.event_sources.test_nats_source import new_stream


def test_it_connects_again(nats_broker: Broker) -> None:
    place = new_stream(nats_broker)
    sink = NatsSink(place)
    sink.append([Event(1, 1)])
    nats_broker.kill()
    with pytest.raises(ServerError, match="check that NATS is running and has the subject"):
        sink.append([Event(1, 2)])
    nats_broker.start()
    sink.append([Event(1, 3)])
    sink.close()
    assert read_back(place, 2) == [Event(1, 1), Event(1, 3)]


def test_a_subject_without_a_stream(nats_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.data.event_sources.nats_source.SECONDS", 2.0)
    sink = NatsSink(f"{nats_broker.address}?subject=nobody.listens")
    with pytest.raises(ServerError, match="no response from stream; check that NATS is running and has the subject"):
        sink.append([Event(1, 2)])


def test_a_stream_that_another_subject_belongs_to(nats_broker: Broker) -> None:
    place = new_stream(nats_broker)
    sink = NatsSink(place.replace("?stream=", "?stream=other"))
    with pytest.raises(ServerError, match="expected stream does not match"):
        sink.append([Event(1, 2)])


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="needs subject="):
        NatsSink("nats://127.0.0.1?stream=events")
    monkeypatch.setattr("pathdex.data.event_sources.nats_source.SECONDS", 0.3)
    with pytest.raises(ServerError, match="check that NATS is running and has the subject"):
        NatsSink(f"nats://127.0.0.1:{free_port()}?subject=events").append([Event(1, 2)])
