"""Appends to a Redis stream with XADD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pathdex.data.event_sinks.base import CHUNK
from pathdex.data.event_sources import redis_source
from pathdex.data.event_sources.broker_url import parse_url
from pathdex.data.events import StreamRecord, encode_record
from pathdex.errors import ConfigError, Problem, ServerError
from pathdex.system import REDIS


class RedisSink:
    """Each entry has one field, `event`. How much survives a crash of Redis is a setting of Redis."""

    def __init__(self, place: str) -> None:
        REDIS.require()
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        url = parse_url(place, redis_source.EXAMPLE, redis_source.OPTIONS, required=("stream",))
        self.name, self.stream = url.shown, url.options["stream"]
        self._most = _number(url.options.get("maxlen"), url.shown)
        try:
            self._redis: Any = redis.Redis.from_url(
                url.server,
                socket_timeout=redis_source.SECONDS,
                socket_connect_timeout=redis_source.SECONDS,
                # A repeated append could be stored twice.
                retry=Retry(NoBackoff(), 0),
            )
            self._redis.connection_pool.make_connection()
        except (ValueError, TypeError) as error:
            problem = Problem(f"is not a Redis URL ({error})", "place", self.name, redis_source.EXAMPLE)
            raise ConfigError([problem]) from error

    def append(self, records: Sequence[StreamRecord]) -> None:
        import redis

        try:
            for start in range(0, len(records), CHUNK):
                pipeline = self._redis.pipeline(transaction=True)
                for record in records[start : start + CHUNK]:
                    pipeline.xadd(self.stream, {"event": encode_record(record)}, maxlen=self._most, approximate=True)
                pipeline.execute()
        except redis.RedisError as error:
            raise ServerError(f"{self.name}: {redis_source.redis_failure(error)}") from error

    def close(self) -> None:
        self._redis.close()


def _number(given: str | None, shown: str) -> int | None:
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and int(given) > 0):
        raise ConfigError([Problem(f"maxlen={given} must be a whole number above 0", "place", shown)])
    return int(given)
