"""Appends events to what `open_source` reads: a JSON lines file, Redis, NATS or Kafka."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pathdex.data.event_sources import kafka_source, nats_source, redis_source
from pathdex.data.event_sources.broker_url import parse_url
from pathdex.data.events import Event
from pathdex.errors import ConfigError, Problem, ServerError, StorageError
from pathdex.system import KAFKA, NATS, REDIS

CHUNK = 1000
"""Events per round trip."""


def append_events(place: str | os.PathLike[str], events: Iterable[Event]) -> int:
    """Append events in order; returns their number. They are stored as JSON, which keeps text and numbers apart."""
    where = os.fspath(place)
    scheme, separator, _ = where.partition("://")
    if separator and scheme not in _SINKS:
        rule = f"the scheme {scheme}:// is unknown"
        raise ConfigError([Problem(rule, "place", f"{scheme}://...", f"use a .jsonl file or {', '.join(_SINKS)}")])
    pairs = [(event, _write(event)) for event in events]
    (_SINKS[scheme] if separator else _append_lines)(where, pairs)
    return len(pairs)


def _write(event: Event) -> bytes:
    fields: dict[str, Any] = {"user": event.user, "item": event.item}
    if event.time is not None:
        fields["time"] = event.time
    if event.weight != 1.0:
        fields["weight"] = event.weight
    return json.dumps(fields).encode()


def _append_lines(where: str, events: list[tuple[Event, bytes]]) -> None:
    try:
        with Path(where).open("ab") as file:
            file.write(b"".join(line + b"\n" for _, line in events))
    except OSError as error:
        raise StorageError(f"cannot append to {where}: {error.strerror or error}; choose another path") from error


def _append_redis(where: str, events: list[tuple[Event, bytes]]) -> None:
    REDIS.require()
    import redis

    url = parse_url(where, redis_source.EXAMPLE, redis_source.OPTIONS, required=("stream",))
    try:
        with redis.Redis.from_url(url.server) as client:
            for start in range(0, len(events), CHUNK):
                pipeline = client.pipeline(transaction=True)
                for _, line in events[start : start + CHUNK]:
                    pipeline.xadd(url.options["stream"], {"event": line})
                pipeline.execute()
    except redis.RedisError as error:
        raise ServerError(f"{url.shown}: {error}; check that Redis is running and reachable") from error


def _append_nats(where: str, events: list[tuple[Event, bytes]]) -> None:
    NATS.require()
    import nats
    from nats.errors import Error

    url = parse_url(where, f"{nats_source.EXAMPLE}&subject=events", nats_source.OPTIONS, required=("subject",))

    async def publish() -> None:
        client = await asyncio.wait_for(nats.connect(url.server.partition("?")[0]), nats_source.SECONDS)
        try:
            stream = client.jetstream()
            for _, line in events:
                await stream.publish(url.options["subject"], line)
        finally:
            await client.close()

    try:
        asyncio.run(publish())
    except (Error, OSError, asyncio.TimeoutError) as error:
        reason = str(error) or "no answer"
        raise ServerError(f"{url.shown}: {reason}; check that NATS is running and has the subject") from error


def _append_kafka(where: str, events: list[tuple[Event, bytes]]) -> None:
    """The user is the key, so that a user's events stay in order in one partition."""
    KAFKA.require()
    from confluent_kafka import Producer

    url = parse_url(where, kafka_source.EXAMPLE, kafka_source.OPTIONS)
    producer = Producer({**url.others, "bootstrap.servers": url.host, "enable.idempotence": True})
    for place, (event, line) in enumerate(events):
        producer.produce(url.path.strip("/"), value=line, key=str(event.user))
        if place % CHUNK == CHUNK - 1:
            producer.flush(kafka_source.SECONDS)
    if waiting := producer.flush(kafka_source.SECONDS):
        raise ServerError(f"{url.shown}: {waiting} events were not stored; check that Kafka is running and reachable")


_SINKS: dict[str, Callable[[str, list[tuple[Event, bytes]]], None]] = {
    **dict.fromkeys(("redis", "rediss", "unix"), _append_redis),
    **dict.fromkeys(("nats", "tls"), _append_nats),
    "kafka": _append_kafka,
}
