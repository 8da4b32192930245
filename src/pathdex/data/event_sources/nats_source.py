"""Events from a NATS JetStream stream through a durable pull consumer.

The position is the sequence number in the stream. `seek` and every reconnection create the consumer again right after
the last message read, so that messages come in order and none is missing, whatever the broker has on record.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from pathdex.data.event_sources.backoff import Backoff
from pathdex.data.event_sources.base import NEW_STATE, EventDecoder, check_position, log, position_value
from pathdex.data.event_sources.broker_url import parse_url
from pathdex.data.events import EventBatch, Position
from pathdex.errors import DataError, Problem, ServerError
from pathdex.system import NATS

EXAMPLE = "nats://host:4222?stream=events&durable=pathdex"
OPTIONS = ("stream", "durable", "subject")
SECONDS = 5.0
"""Timeout of a call."""
MOST = 1000
"""Messages per call."""
UNACKNOWLEDGED = 10_000
"""Batches whose acknowledgement is remembered."""
RECONNECT_SECONDS = 0.2
ACK_WAIT = 24 * 3600.0
"""The broker delivers again after this time; it never has to, since `seek` reads again what is missing."""

Result = TypeVar("Result")


class NatsSource:
    """A JetStream stream, or one subject of it."""

    def __init__(self, place: str, decoder: EventDecoder) -> None:
        NATS.require()
        url = parse_url(place, EXAMPLE, OPTIONS, required=("stream",))
        self.name, self.stream = url.shown, url.options["stream"]
        self.durable, self.subject = url.options.get("durable", "pathdex"), url.options.get("subject")
        self._decoder = decoder
        self._backoff = Backoff()
        self._cursor: int | None = None
        self._created = ""
        self._attached = False
        self._lost = 0
        self._replies: dict[int, str] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pathdex-nats", daemon=True)
        self._thread.start()
        try:
            self._run(self._connect(url.server.partition("?")[0]))
        except BaseException as error:
            self._stop()
            if isinstance(error, Exception) and not isinstance(error, DataError):
                reason = str(error) or "no answer"
                raise ServerError(f"{self.name}: {reason}; check that NATS is running and reachable") from error
            raise

    def seek(self, position: Position | None) -> None:
        self._cursor, self._attached, self._lost = None, False, 0
        if position is not None:
            check_position(position, "nats", stream=self.stream)
            self._cursor = position_value(position, "sequence", int)
            self._created = position_value(position, "created", str)
        self._try(self._attach())

    def read(self, max_events: int, timeout: float) -> EventBatch | None:
        deadline = time.monotonic() + timeout
        count, messages = min(max_events, MOST), []  # type: tuple[int, list[Any]]
        while not messages and not self._lost:
            remaining = deadline - time.monotonic()
            if self._client.is_connected and (self._attached or self._try(self._attach())):
                messages = self._try(self._fetch(count, max(0.01, remaining))) or []
                if not messages and self._attached and remaining > 0:
                    self._try(self._check_consumer())
            else:
                self._backoff.wait(max(0.01, remaining))
            if time.monotonic() >= deadline:
                break
        lost, self._lost = self._lost, 0
        placed = ((f"{self.stream}/{message.metadata.sequence.stream}", message.data) for message in messages)
        events, malformed = self._decoder.decode(placed, self._decoder.parser.parse_json)
        return EventBatch(events, self._position, malformed, lost, drained=len(messages) < count)

    def acknowledge(self, position: Position) -> None:
        """Acknowledge the messages up to the position. During an outage a later call does it."""
        check_position(position, "nats", stream=self.stream)
        sequence = position_value(position, "sequence", int)
        done = [one for one in self._replies if one <= sequence]
        if done and self._client.is_connected:
            self._try(self._client.publish(self._replies[done[-1]], b"+ACK"))
            self._try(self._client.flush(timeout=int(SECONDS)))
        for one in done:
            del self._replies[one]

    def lag(self) -> int | None:
        if not (self._attached and self._client.is_connected):
            return None
        info = self._try(self._jetstream.consumer_info(self.stream, self.durable))
        return None if info is None else int(info.num_pending)

    def close(self) -> None:
        with suppress(Exception):
            self._run(self._client.close())
        self._stop()
        self._decoder.close()

    @property
    def _position(self) -> Position:
        return {"source": "nats", "stream": self.stream, "created": self._created, "sequence": self._cursor or 0}

    def _run(self, work: Coroutine[Any, Any, Result], timeout: float = 4 * SECONDS) -> Result:
        """Run in the thread of the client."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def _try(self, work: Coroutine[Any, Any, Result]) -> Result | None:
        """Run; None if the broker does not answer, which is logged once per outage."""
        import nats.errors
        import nats.js.errors

        try:
            result = self._run(work, 60 * SECONDS)
        except nats.js.errors.NotFoundError as error:
            self._attached = False
            raise DataError(self._no_stream(error)) from error
        except (nats.errors.Error, OSError, asyncio.TimeoutError) as error:
            self._attached = False
            if not self._backoff.failures:
                log.warning("%s: %s; trying again until it works", self.name, str(error) or type(error).__name__)
            self._backoff.failures += 1
            return None
        self._backoff.reset()
        return result

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    async def _connect(self, server: str) -> None:
        import nats

        async def disconnected() -> None:
            self._attached = False
            if not self._client.is_closed:
                log.warning("%s is gone; reconnecting until it works", self.name)

        async def reconnected() -> None:
            self._attached = False  # Messages on their way were lost with the connection.
            log.warning("%s is reachable again", self.name)

        async def failed(error: Exception) -> None:
            log.debug("%s: %s", self.name, error)

        connecting = nats.connect(
            server,
            max_reconnect_attempts=-1,
            reconnect_time_wait=RECONNECT_SECONDS,
            connect_timeout=int(SECONDS),
            disconnected_cb=disconnected,
            reconnected_cb=reconnected,
            error_cb=failed,
        )
        self._client: Any = await asyncio.wait_for(connecting, SECONDS)
        self._jetstream: Any = self._client.jetstream(timeout=SECONDS)

    def _no_stream(self, error: Exception) -> Problem:
        rule = f"{self.name} has no stream {self.stream!r} ({error})"
        return Problem(rule, remedy=f"create it: nats stream add {self.stream} --subjects '{self.stream}.>'")

    async def _attach(self) -> bool:
        """Create the consumer right after the last message read."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
        from nats.js.errors import NotFoundError

        info = await self._jetstream.stream_info(self.stream)
        created = info.created.isoformat()
        if self._cursor is None:
            self._created, self._cursor = created, 0
            with suppress(NotFoundError):
                durable = await self._jetstream.consumer_info(self.stream, self.durable)
                self._cursor = durable.ack_floor.stream_seq
            self._cursor = max(self._cursor, info.state.first_seq - 1)
        stream, last = f"the stream {self.stream} of {self.name}", info.state.last_seq
        if created != self._created:
            rule = f"{stream} is not the one that was read: it was created {created}"
            raise DataError(Problem(rule, remedy=f"restore the stream; {NEW_STATE}"))
        if last < self._cursor:
            rule = f"{stream} ends at message {last:,}, but {self._cursor:,} was read: it lost its last messages"
            raise DataError(Problem(rule, remedy=f"restore the stream; {NEW_STATE}"))
        self._count_lost(info.state.first_seq)
        with suppress(NotFoundError):
            await self._jetstream.delete_consumer(self.stream, self.durable)
        consumer = ConsumerConfig(
            durable_name=self.durable,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self._cursor + 1,
            ack_policy=AckPolicy.ALL,
            ack_wait=ACK_WAIT,
            max_ack_pending=-1,
            filter_subject=self.subject,
        )
        await self._jetstream.add_consumer(self.stream, consumer)
        self._messages = await self._jetstream.pull_subscribe_bind(consumer=self.durable, stream=self.stream)
        self._replies.clear()
        self._delivered = 0
        self._attached = True
        return True

    async def _fetch(self, count: int, timeout: float) -> list[Any]:
        """The next messages. If one of them is missing, the consumer is created again."""
        from nats.errors import TimeoutError as NoMessageError

        try:
            found = await self._messages.fetch(count, timeout=timeout)
        except (NoMessageError, asyncio.TimeoutError):
            return []
        messages: list[Any] = []
        for message in found:
            if message.metadata.sequence.consumer != self._delivered + 1:
                self._attached = False
                break
            self._delivered += 1
            messages.append(message)
        if messages:
            assert self._cursor is not None
            first, last = messages[0].metadata.sequence.stream, messages[-1]
            if first > self._cursor + 1:
                info = await self._jetstream.stream_info(self.stream)
                self._count_lost(min(first, info.state.first_seq))
            self._cursor = last.metadata.sequence.stream
            self._replies[self._cursor] = last.reply
            if len(self._replies) > UNACKNOWLEDGED:
                del self._replies[next(iter(self._replies))]
        return messages

    def _count_lost(self, first: int) -> None:
        """Count the messages after the last one read that the stream no longer has."""
        assert self._cursor is not None
        if first > self._cursor + 1:
            lost = first - self._cursor - 1
            log.warning("%s: %d messages of %s were dropped before they were read", self.name, lost, self.stream)
            self._lost += lost
            self._cursor = first - 1

    async def _check_consumer(self) -> None:
        """Notice that somebody deleted the consumer; it would be silent for ever."""
        from nats.js.errors import NotFoundError

        try:
            await self._jetstream.consumer_info(self.stream, self.durable)
        except NotFoundError:
            log.warning("%s: the consumer %s was deleted; it is created again", self.name, self.durable)
            self._attached = False
