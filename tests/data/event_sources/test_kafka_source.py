"""Kafka, against the mock broker of librdkafka: it has topics, offsets and groups, but it is not a real Kafka."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathdex.data.event_sinks import append_events
from pathdex.data.event_sources import open_source
from pathdex.data.event_sources.base import EventDecoder, EventSource
from pathdex.data.event_sources.kafka_source import KafkaSource
from pathdex.data.events import Event
from pathdex.errors import ConfigError, DataError, MissingExtraError, ServerError
from tests.data.event_sources.conftest import EVENTS, events_of, free_port, read_and_resume, read_until

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a mock cluster, which lives in a producer."""
    owner = Producer({"test.mock.num.brokers": 1})
    broker = next(iter(owner.list_topics(timeout=5).brokers.values()))
    yield f"kafka://{broker.host}:{broker.port}"
    owner.flush(1)


def new_topic(cluster: str, events: list[Event] = EVENTS) -> str:
    place = f"{cluster}/events{next(NUMBERS)}"
    append_events(place, events)
    return place


def opened(place: str, **options: Any) -> EventSource:
    source = open_source(place, **options)
    source.seek(None)
    return source


def by_user(events: list[Event]) -> dict[Any, list[Event]]:
    """Kafka keeps the order within a partition, so within a user."""
    return {user: [event for event in events if event.user == user] for user in {event.user for event in events}}


def test_every_partition_is_read_in_order_and_committed(cluster: str) -> None:
    place = new_topic(cluster)
    source = opened(place)
    batches = read_until(source, len(EVENTS))
    assert by_user(events_of(batches)) == by_user(EVENTS)
    position = batches[-1].position
    assert sum(position["offsets"].values()) == len(EVENTS)
    assert source.lag() == 0
    source.close()
    again = opened(place)
    assert len(events_of(read_until(again, len(EVENTS)))) == len(EVENTS)  # Nothing was acknowledged.
    again.acknowledge(position)
    again.close()
    append_events(place, [Event("new", 1)])
    last = opened(place)
    assert events_of(read_until(last, 1)) == [Event("new", 1)]
    last.close()


def test_a_position_wins_over_the_group(cluster: str) -> None:
    place = new_topic(cluster)
    source = opened(place)
    batches = read_until(source, len(EVENTS), size=9)
    source.acknowledge(batches[-1].position)
    source.close()
    again = open_source(place)
    again.seek(batches[1].position)
    rest = len(EVENTS) - len(events_of(batches[:2]))
    found = events_of(read_until(again, rest))
    assert by_user(events_of(batches[:2]) + found) == by_user(EVENTS)
    again.close()


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stops=st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=4))
def test_kills_lose_and_repeat_nothing(cluster: str, stops: list[tuple[int, bool]]) -> None:
    place = new_topic(cluster)
    assert by_user(read_and_resume(lambda: open_source(place), stops, len(EVENTS))) == by_user(EVENTS)


def test_malformed_messages_go_to_the_dead_letters(cluster: str, letters: Path) -> None:
    place = new_topic(cluster, EVENTS[:1])
    producer = Producer({"bootstrap.servers": cluster.removeprefix("kafka://")})
    for value in (b"nonsense", None):
        producer.produce(place.rpartition("/")[2], value=value, partition=0)
    producer.flush(5)
    source = opened(place, dead_letters=letters)
    batches = []
    while sum(batch.malformed + len(batch.events) for batch in batches) < 3:
        batches.append(source.read(10, 1))
    assert events_of(batches) == EVENTS[:1]
    places = [json.loads(line)["position"] for line in letters.read_text().splitlines()]
    assert all(place.startswith("events") for place in places)
    assert len(places) == 2
    source.close()


class Dropped:
    """A message that reports that its offset no longer exists."""

    def error(self) -> Any:
        return self

    def code(self) -> int:
        return -140

    def partition(self) -> int:
        return 0


def test_dropped_messages_are_counted(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock broker does not delete old messages, so its answer is imitated."""
    place = new_topic(cluster)
    source = KafkaSource(place, EventDecoder())
    source.seek(None)
    monkeypatch.setattr(source, "_watermarks", lambda number: (5, 9))
    assert source._handle(Dropped()) == 5
    assert source._offsets[0] == 5
    monkeypatch.setattr(source, "_watermarks", lambda number: (0, 2))
    with pytest.raises(DataError, match=r"partition 0 of .* ends at offset 2, but 5 was read; restore the topic"):
        source._handle(Dropped())
    source.close()


def test_a_topic_that_was_created_again(cluster: str) -> None:
    place = new_topic(cluster)
    topic = place.rpartition("/")[2]
    source = open_source(place)
    with pytest.raises(DataError, match=r"partition 0 of .* ends at offset [\d]+, but 1,000 was read"):
        source.seek({"source": "kafka", "topic": topic, "offsets": {"0": 1000}})
    with pytest.raises(DataError, match=r"no longer has the partitions \[77\]"):
        source.seek({"source": "kafka", "topic": topic, "offsets": {"77": 1}})
    with pytest.raises(DataError, match="the position is of the topic 'x'"):
        source.seek({"source": "kafka", "topic": "x", "offsets": {}})
    source.close()


def test_offsets_of_the_group_are_not_committed_before_the_acknowledgement(cluster: str) -> None:
    place = new_topic(cluster)
    source = KafkaSource(f"{place}?group=mine", EventDecoder())
    source.seek(None)
    batches = read_until(source, len(EVENTS))
    places = [TopicPartition(source.topic, number) for number in source._offsets]
    assert {one.offset for one in source._consumer.committed(places, timeout=5)} == {-1001}
    source.acknowledge(batches[-1].position)
    committed = {str(one.partition): one.offset for one in source._consumer.committed(places, timeout=5)}
    assert committed == batches[-1].position["offsets"]
    source.close()


def test_errors_of_opening(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"needs a topic; write it as kafka://host:9092/topic"):
        open_source(cluster)
    with pytest.raises(ConfigError, match=r"Kafka refuses the parameters \(No such configuration property"):
        open_source(f"{cluster}/topic?no.such=1")
    with pytest.raises(DataError, match="has no topic 'nowhere'; create the topic"):
        open_source(f"{cluster}/nowhere")
    monkeypatch.setattr("pathdex.data.event_sources.kafka_source.SECONDS", 0.3)
    with pytest.raises(ServerError, match=r"kafka://127.0.0.1:\d+/topic: .*; check that Kafka is running"):
        open_source(f"kafka://127.0.0.1:{free_port()}/topic")
    monkeypatch.setattr("pathdex.system.Feature.available", False)
    with pytest.raises(MissingExtraError, match=r"needs confluent_kafka; install .*: pip install 'pathdex\[kafka\]'"):
        open_source("kafka://localhost/topic")
