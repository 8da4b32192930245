"""Redis Streams, against a real server."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathdex.data.event_sinks import append_events
from pathdex.data.event_sources import open_source
from pathdex.data.event_sources.base import EventSource
from pathdex.data.event_sources.redis_source import redis_failure
from pathdex.data.events import Event
from pathdex.errors import ConfigError, DataError, MissingExtraError, ServerError
from tests.data.event_sources.conftest import (
    EVENTS,
    Broker,
    events_of,
    free_port,
    read_all,
    read_and_resume,
    read_until,
)

NUMBERS = itertools.count()


@pytest.fixture
def place(redis_broker: Broker) -> str:
    """The URL of an empty stream."""
    return f"{redis_broker.address}?stream=events{next(NUMBERS)}"


@pytest.fixture
def client(redis_broker: Broker) -> Iterator[Any]:
    with redis.Redis.from_url(redis_broker.address) as connection:
        yield connection


def stream_of(place: str) -> str:
    return place.partition("stream=")[2].partition("&")[0]


def opened(place: str, **options: Any) -> EventSource:
    source = open_source(place, **options)
    source.seek(None)
    return source


def test_events_come_in_order_and_are_acknowledged(place: str, client: Any) -> None:
    append_events(place, EVENTS)
    source = opened(place)
    assert source.lag() == len(EVENTS)
    first = source.read(25, 0)
    assert first is not None
    assert first.events == EVENTS[:25]
    assert source.lag() == len(EVENTS) - 25
    rest = read_all(source)
    assert events_of(rest) == EVENTS[25:]
    assert client.xpending(stream_of(place), "pathdex")["pending"] == len(EVENTS)
    source.acknowledge(first.position)
    assert client.xpending(stream_of(place), "pathdex")["pending"] == len(EVENTS) - 25
    source.acknowledge(rest[-1].position)
    assert client.xpending(stream_of(place), "pathdex")["pending"] == 0
    assert source.lag() == 0
    source.close()


def test_an_entry_has_fields_or_json(place: str, client: Any, letters: Path) -> None:
    stream = stream_of(place)
    client.xadd(stream, {"user_id": "ada", "item_id": "12", "timestamp": "5", "weight": "0.5", "other": "x"})
    client.xadd(stream, {"data": '{"user": 7, "item": "007"}'})
    bad = client.xadd(stream, {"user": "ada", "item": b"\xff"}).decode()
    client.xadd(stream, {"event": "nonsense"})
    source = opened(place, dead_letters=letters)
    batch = source.read(10, 0)
    assert batch is not None
    assert batch.events == [Event("ada", 12, 5.0, 0.5), Event(7, "007")]
    assert batch.malformed == 2
    source.close()
    written = [json.loads(line) for line in letters.read_text().splitlines()]
    assert written[0]["position"] == f"{stream}/{bad}"
    assert written[0]["reason"] == "a field is not UTF-8 text"
    assert "is not JSON" in written[1]["reason"]


def test_without_a_position_the_group_continues_after_what_is_acknowledged(place: str) -> None:
    append_events(place, EVENTS)
    source = opened(place)
    batch = source.read(10, 0)
    assert batch is not None
    source.acknowledge(batch.position)
    source.read(10, 0)
    source.close()
    again = opened(place)
    assert events_of(read_all(again)) == EVENTS[10:]
    again.close()


def test_a_position_wins_over_the_group(place: str) -> None:
    append_events(place, EVENTS)
    source = opened(place)
    batches = read_all(source, 10)
    source.acknowledge(batches[-1].position)
    source.close()
    again = open_source(place)
    again.seek(batches[2].position)
    assert events_of(read_all(again, 7)) == EVENTS[30:]
    again.close()
    other = open_source(f"{place}&group=other")
    other.seek(batches[2].position)
    assert events_of(read_all(other, 7)) == EVENTS[30:]
    other.close()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stops=st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=8))
def test_kills_lose_and_repeat_nothing(redis_broker: Broker, stops: list[tuple[int, bool]]) -> None:
    place = f"{redis_broker.address}?stream=kills{next(NUMBERS)}"
    append_events(place, EVENTS)
    assert read_and_resume(lambda: open_source(place), stops, len(EVENTS)) == EVENTS


def test_a_restart_of_redis_loses_and_repeats_nothing(
    redis_broker: Broker, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    append_events(place, EVENTS[:30])
    source = opened(place)
    first = events_of(read_until(source, 10, size=10))
    redis_broker.kill()
    with caplog.at_level(logging.WARNING, "pathdex.stream"):
        batch = source.read(10, 0.15)
        assert batch is not None
        assert batch.events == []
        assert source.lag() is None
        source.acknowledge(batch.position)
        redis_broker.start()
        append_events(place, EVENTS[30:])
        assert first + events_of(read_until(source, 50)) == EVENTS
    assert "trying again until it works" in caplog.text
    assert "is reachable again" in caplog.text
    source.close()


def test_trimmed_entries_are_counted(place: str, client: Any, caplog: pytest.LogCaptureFixture) -> None:
    append_events(place, EVENTS)
    source = opened(place)
    first = source.read(10, 0)
    assert first is not None
    client.xtrim(stream_of(place), maxlen=20, approximate=False)
    rest = read_all(source)
    assert events_of(rest) == EVENTS[40:]
    assert [batch.lost for batch in rest] == [30, 0]
    assert "30 entries of" in caplog.text
    source.close()
    again = open_source(place)
    again.seek(first.position)
    rest = read_all(again)
    assert (events_of(rest), rest[0].lost) == (EVENTS[40:], 30)
    again.close()


def test_trimming_what_was_read_loses_nothing(place: str, client: Any) -> None:
    append_events(place, EVENTS)
    source = opened(place)
    read_until(source, 40, size=20)
    client.xtrim(stream_of(place), maxlen=20, approximate=False)
    rest = read_all(source)
    assert events_of(rest) == EVENTS[40:]
    assert sum(batch.lost for batch in rest) == 0
    source.close()


def test_a_deleted_stream_is_created_again(place: str, client: Any, caplog: pytest.LogCaptureFixture) -> None:
    append_events(place, EVENTS[:20])
    source = opened(place)
    read_until(source, 20)
    client.delete(stream_of(place))
    batch = source.read(5, 0.3)
    assert batch is not None
    append_events(place, EVENTS[20:])
    assert events_of(read_until(source, 40)) == EVENTS[20:]
    assert "was deleted" in caplog.text
    source.close()


def test_another_consumer_of_the_group_takes_nothing_away(place: str, client: Any) -> None:
    append_events(place, EVENTS[:20])
    source = opened(place)
    read_until(source, 20)
    append_events(place, EVENTS[20:40])
    client.xreadgroup("pathdex", "somebody", {stream_of(place): ">"}, count=20)
    append_events(place, EVENTS[40:])
    assert events_of(read_until(source, 40)) == EVENTS[20:]
    source.close()


def test_a_stream_that_does_not_exist_yet_is_waited_for(place: str) -> None:
    source = opened(place)
    batch = source.read(5, 0)
    assert batch is not None
    assert batch.events == []
    append_events(place, EVENTS[:3])
    assert events_of(read_until(source, 3)) == EVENTS[:3]
    source.close()


def test_a_position_of_another_source(place: str) -> None:
    source = open_source(place)
    with pytest.raises(DataError, match="the position is of another kind of source, not of redis"):
        source.seek({"source": "jsonl", "offset": 3})
    with pytest.raises(DataError, match="the position is of the stream 'others', not of 'events"):
        source.seek({"source": "redis", "stream": "others", "id": "1-0"})
    with pytest.raises(DataError, match="is not the id of an entry"):
        source.seek({"source": "redis", "stream": stream_of(place), "id": "x"})
    source.close()


def test_errors_of_opening(redis_broker: Broker, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"needs stream= in its parameters; write it as redis://host:6379/0\?stream="):
        open_source(redis_broker.address)
    with pytest.raises(ServerError, match=r"redis://\*\*\*@127.0.0.1:\d+/0: .*; check that Redis is running"):
        open_source(f"redis://me:secret@127.0.0.1:{free_port()}/0?stream=events")
    client.set("text", "x")
    source = open_source(f"{redis_broker.address}?stream=text")
    with pytest.raises(ServerError, match="WRONGTYPE"):
        source.seek(None)
    source.close()
    monkeypatch.setattr("pathdex.system.Feature.available", False)
    with pytest.raises(MissingExtraError, match=r"needs redis; install it with: pip install 'pathdex\[redis\]'"):
        open_source("redis://localhost?stream=events")


def test_a_failure_ends_with_its_remedy() -> None:
    redis = pytest.importorskip("redis")
    refused = redis.ConnectionError("Error 111 connecting to host:1. Connection refused.")
    told = "Error 111 connecting to host:1. Connection refused; check that Redis is running and reachable"
    assert redis_failure(refused) == told
    wrong = redis.AuthenticationError("invalid username-password pair or user is disabled.")
    assert redis_failure(wrong).endswith("is disabled; check the user and the password of the URL")
