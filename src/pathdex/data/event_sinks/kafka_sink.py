"""Produces to a Kafka topic and waits for the delivery reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pathdex.data.event_sinks.base import CHUNK
from pathdex.data.event_sources import kafka_source
from pathdex.data.event_sources.broker_url import parse_url
from pathdex.data.events import Event, StreamRecord, encode_record
from pathdex.errors import ConfigError, Problem, ServerError
from pathdex.system import KAFKA


class KafkaSink:
    """The key is the user, so that a user's events stay in order in one partition; for item changes, the item."""

    def __init__(self, place: str) -> None:
        KAFKA.require()
        from confluent_kafka import KafkaException, Producer

        url = parse_url(place, kafka_source.EXAMPLE, kafka_source.OPTIONS)
        self.name, self._topic = url.shown, url.path.strip("/")
        if not self._topic:
            raise ConfigError([Problem("needs a topic", "place", self.name, f"write it as {kafka_source.EXAMPLE}")])
        settings: dict[str, Any] = {
            **url.others,
            "bootstrap.servers": url.host,
            "enable.idempotence": True,
            "delivery.timeout.ms": int(1000 * kafka_source.SECONDS),
            "linger.ms": 0,
            "log_level": 2,  # `append` raises errors; librdkafka would log every attempt to connect.
        }
        try:
            self._producer: Any = Producer(settings)
        except KafkaException as error:
            problem = Problem(
                f"Kafka refuses the parameters ({error.args[0].str()})", "place", self.name, kafka_source.EXAMPLE
            )
            raise ConfigError([problem]) from error

    def append(self, records: Sequence[StreamRecord]) -> None:
        for start in range(0, len(records), CHUNK):
            self._produce(records[start : start + CHUNK])

    def close(self) -> None:
        """Nothing waits in the producer between two calls; its connections end with it."""

    def _produce(self, records: Sequence[StreamRecord]) -> None:
        failures: list[str] = []

        def report(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(error.str())

        for record in records:
            key = record.user if isinstance(record, Event) else record.item
            self._producer.produce(self._topic, value=encode_record(record), key=str(key), on_delivery=report)
        if self._producer.flush(2 * kafka_source.SECONDS):
            self._producer.purge()  # They must not be sent later.
            self._producer.flush(kafka_source.SECONDS)
        if failures:
            stored = f"{len(failures)} of {len(records)} records were not stored ({failures[0]})"
            raise ServerError(f"{self.name}: {stored}; check that Kafka is running and reachable")
