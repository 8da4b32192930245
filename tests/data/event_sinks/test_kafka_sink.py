"""Kafka, against the mock broker of librdkafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from pathdex.data.event_sinks.kafka_sink import KafkaSink
from pathdex.data.events import Event
from pathdex.errors import ConfigError, ServerError
from tests.data.event_sinks.conftest import RECORDS, read_back
from tests.data.event_sources.conftest import free_port


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    owner = Producer({"test.mock.num.brokers": 1})
    broker = next(iter(owner.list_topics(timeout=5).brokers.values()))
    yield f"kafka://{broker.host}:{broker.port}"
    owner.flush(1)


def test_records_are_read_back(cluster: str) -> None:
    place = f"{cluster}/records"
    sink = KafkaSink(place)
    sink.append(RECORDS)
    many = [Event("ada", number) for number in range(1200)]
    sink.append(many)
    sink.close()
    found = read_back(place, len(RECORDS) + len(many))
    assert all(one in found for one in RECORDS)
    assert len(found) == len(RECORDS) + len(many)
    assert [one for one in found if isinstance(one, Event) and one.user == "ada"] == [RECORDS[0], *many]


def test_what_is_not_delivered_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.data.event_sources.kafka_source.SECONDS", 0.3)
    sink = KafkaSink(f"kafka://127.0.0.1:{free_port()}/topic")
    with pytest.raises(ServerError, match=r"1 of 1 records were not stored \(.*\); check that Kafka is running"):
        sink.append([Event(1, 2)])


def test_wrong_urls() -> None:
    with pytest.raises(ConfigError, match="needs a topic"):
        KafkaSink("kafka://host:9092")
    with pytest.raises(ConfigError, match="Kafka refuses the parameters"):
        KafkaSink("kafka://host:9092/topic?colour=red")
