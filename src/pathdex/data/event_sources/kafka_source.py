"""Events from a Kafka topic.

The position holds the next offset of every partition. Offsets of a position win over those that the group has
committed; nothing is committed before `acknowledge`.
"""

from __future__ import annotations

import time
from typing import Any

from pathdex.data.event_sources.base import NEW_STATE, EventDecoder, check_position, log, position_value
from pathdex.data.event_sources.broker_url import parse_url
from pathdex.data.events import EventBatch, Position
from pathdex.errors import ConfigError, DataError, Problem, ServerError
from pathdex.system import KAFKA

EXAMPLE = "kafka://host:9092/topic?group=pathdex"
OPTIONS = ("group",)
SECONDS = 5.0
"""Timeout of a call."""
MOST = 10_000
"""Messages per call."""
FIRST_WAIT = 0.05
"""Seconds to collect further messages; librdkafka returns early only when it has all that were asked for."""
NEW_PARTITION_SECONDS = 60.0
BUFFER_KILOBYTES = 16_384
"""Messages that librdkafka reads ahead."""


class KafkaSource:
    """A topic. All its partitions are read by this consumer, without rebalancing."""

    def __init__(self, place: str, decoder: EventDecoder) -> None:
        KAFKA.require()
        from confluent_kafka import Consumer, KafkaException

        url = parse_url(place, EXAMPLE, OPTIONS)
        self.name, self.topic = url.shown, url.path.strip("/")
        if not self.topic:
            raise ConfigError([Problem("needs a topic", "place", self.name, f"write it as {EXAMPLE}")])
        self._decoder = decoder
        self._offsets: dict[int, int] = {}
        self._down = False
        settings: dict[str, Any] = {
            **url.others,
            "bootstrap.servers": url.host,
            "group.id": url.options.get("group", "pathdex"),
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "queued.max.messages.kbytes": BUFFER_KILOBYTES,
            "reconnect.backoff.max.ms": 5000,
            "error_cb": self._on_error,
            "log_level": 2,  # The callback reports errors; librdkafka would log every attempt to connect.
        }
        try:
            self._consumer: Any = Consumer(settings)
        except KafkaException as error:
            problem = Problem(f"Kafka refuses the parameters ({error.args[0].str()})", "place", self.name, EXAMPLE)
            raise ConfigError([problem]) from error
        try:
            self._partitions()
        except BaseException:
            self._consumer.close()
            raise

    def seek(self, position: Position | None) -> None:
        given: dict[int, int] = {}
        if position is not None:
            check_position(position, "kafka", topic=self.topic)
            offsets = position_value(position, "offsets", dict)
            given = {int(number): position_value(offsets, number, int) for number in offsets}
        partitions = self._partitions()
        if missing := sorted(set(given) - set(partitions)):
            rule = f"the topic {self.topic} of {self.name} no longer has the partitions {missing}"
            raise DataError(Problem(rule, remedy=f"restore the topic; {NEW_STATE}"))
        self._offsets = {number: given.get(number, 0) for number in partitions}
        committed = self._committed(partitions) if position is None else {}
        for number in partitions:
            low, high = self._watermarks(number)
            start = given.get(number, committed.get(number, low))
            if start > high:
                rule = f"partition {number} of {self.topic} ends at offset {high:,}, but {start:,} was read"
                raise DataError(Problem(rule, remedy=f"restore the topic, which was created again; {NEW_STATE}"))
            self._offsets[number] = start
        self._assign()

    def read(self, max_events: int, timeout: float) -> EventBatch | None:
        self._add_partitions()
        count, deadline = min(max_events, MOST), time.monotonic() + timeout
        # One message is waited for; the others are those that are there.
        messages = self._consumer.consume(1, max(0.0, timeout))
        if messages and count > 1:
            messages += self._consumer.consume(count - 1, min(FIRST_WAIT, max(0.0, deadline - time.monotonic())))
        lost = 0
        good = []
        for message in messages:
            if message.error() is not None:
                lost += self._handle(message)
            elif message.offset() >= self._offsets[message.partition()]:
                self._offsets[message.partition()] = message.offset() + 1
                good.append(message)
        if good and self._down:
            self._down = False
            log.warning("%s is reachable again", self.name)
        placed = ((f"{self.topic}/{one.partition()}/{one.offset()}", one.value() or b"") for one in good)
        events, malformed = self._decoder.decode(placed, self._decoder.parser.parse_json)
        return EventBatch(events, self._position, malformed, lost, drained=len(messages) < count)

    def acknowledge(self, position: Position) -> None:
        """Commit the offsets to the group. A failure is logged: the checkpoint holds them as well."""
        from confluent_kafka import KafkaException, TopicPartition

        check_position(position, "kafka", topic=self.topic)
        offsets = position_value(position, "offsets", dict)
        try:
            places = [TopicPartition(self.topic, int(number), offset) for number, offset in offsets.items()]
            self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            log.warning("%s: the offsets could not be committed (%s)", self.name, error.args[0].str())

    def lag(self) -> int | None:
        from confluent_kafka import TopicPartition

        total = 0
        for number, offset in self._offsets.items():
            known = self._consumer.get_watermark_offsets(TopicPartition(self.topic, number), cached=True)
            if known is None or known[1] < 0:
                return None
            total += max(0, known[1] - offset)
        return total

    def close(self) -> None:
        self._consumer.close()
        self._decoder.close()

    @property
    def _position(self) -> Position:
        offsets = {str(number): offset for number, offset in sorted(self._offsets.items())}
        return {"source": "kafka", "topic": self.topic, "offsets": offsets}

    def _partitions(self) -> list[int]:
        from confluent_kafka import KafkaException

        try:
            topic = self._consumer.list_topics(self.topic, timeout=SECONDS).topics[self.topic]
        except KafkaException as error:
            reason = error.args[0].str()
            raise ServerError(f"{self.name}: {reason}; check that Kafka is running and reachable") from error
        self._next_look = time.monotonic() + NEW_PARTITION_SECONDS
        if topic.error is not None or not topic.partitions:
            rule = f"{self.name} has no topic {self.topic!r}"
            raise DataError(Problem(rule, remedy="create the topic, or check its name"))
        return sorted(topic.partitions)

    def _committed(self, partitions: list[int]) -> dict[int, int]:
        from confluent_kafka import TopicPartition

        found = self._consumer.committed([TopicPartition(self.topic, number) for number in partitions], timeout=SECONDS)
        return {one.partition: one.offset for one in found if one.offset >= 0}

    def _watermarks(self, number: int) -> tuple[int, int]:
        from confluent_kafka import KafkaException, TopicPartition

        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(self.topic, number), timeout=SECONDS)
        except KafkaException as error:
            raise ServerError(f"{self.name}: {error.args[0].str()}; try again when Kafka is reachable") from error
        return low, high

    def _assign(self) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.assign([TopicPartition(self.topic, number, at) for number, at in self._offsets.items()])

    def _add_partitions(self) -> None:
        """From time to time, look for partitions that were added to the topic."""
        if time.monotonic() < self._next_look or self._down:
            return
        try:
            new = set(self._partitions()) - set(self._offsets)
        except ServerError as error:
            log.warning("%s; trying again until it works", error)
            self._down, self._next_look = True, time.monotonic() + NEW_PARTITION_SECONDS
            return
        if new:
            log.warning("%s: the topic %s has %d new partitions", self.name, self.topic, len(new))
            self._offsets.update(dict.fromkeys(sorted(new), 0))
            self._assign()

    def _handle(self, message: Any) -> int:
        """Continue after an error of one partition. Returns how many messages it lost."""
        from confluent_kafka import KafkaError

        error, number = message.error(), message.partition()
        if error.code() != KafkaError._AUTO_OFFSET_RESET:
            self._on_error(error)
            return 0
        try:
            low, high = self._watermarks(number)
        except ServerError:  # The same error comes again, and with it another try.
            self._assign()
            return 0
        lost = low - self._offsets[number]
        if lost < 0:
            rule = f"partition {number} of {self.topic} ends at offset {high:,}, but {self._offsets[number]:,} was read"
            raise DataError(Problem(rule, remedy=f"restore the topic, which was created again; {NEW_STATE}"))
        log.warning("%s: %d messages of %s were dropped before they were read", self.name, lost, self.topic)
        self._offsets[number] = low
        self._assign()
        return lost

    def _on_error(self, error: Any) -> None:
        """Log an outage once; librdkafka reconnects by itself. Only fatal errors stop the stream."""
        if error.fatal():
            raise ServerError(f"{self.name}: {error.str()}")
        if not self._down:
            self._down = True
            log.warning("%s: %s; trying again until it works", self.name, error.str())
