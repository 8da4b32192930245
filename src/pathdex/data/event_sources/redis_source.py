"""Events from a Redis stream through a consumer group.

The position is the id of the last entry read. What the group has delivered after it is read again from the stream, then
come new entries. Every read looks at the stream in the same transaction, so entries that were trimmed before they were
read are counted exactly (Redis 7 or later).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pathdex.data.event_sources.backoff import Backoff
from pathdex.data.event_sources.base import EventDecoder, check_position, log, position_value
from pathdex.data.event_sources.broker_url import parse_url
from pathdex.data.events import EventBatch, Malformed, Position, StreamRecord
from pathdex.errors import ConfigError, DataError, Problem, ServerError
from pathdex.system import REDIS

EXAMPLE = "redis://host:6379/0?stream=events&group=pathdex"
OPTIONS = ("stream", "group", "consumer", "maxlen")
SECONDS = 5.0
"""Timeout of a call."""
BLOCK_SECONDS = 1.0
"""Longest wait inside Redis."""
MOST = 10_000
"""Entries per call."""
JSON_FIELDS = ("event", "data")
"""An entry with one such field holds the event as JSON."""
_TEMPORARY = ("LOADING", "READONLY", "MISCONF", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN")
_MISSING = ("NOGROUP", "no such key")

EntryId = tuple[int, int]
Result = TypeVar("Result")


class RedisSource:
    """A Redis stream. Use one group per trainer."""

    def __init__(self, place: str, decoder: EventDecoder) -> None:
        REDIS.require()
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        url = parse_url(place, EXAMPLE, OPTIONS, required=("stream",))
        self.name, self.stream = url.shown, url.options["stream"]
        self.group = url.options.get("group", "pathdex")
        self.consumer = url.options.get("consumer", "trainer")
        self._decoder = decoder
        self._backoff = Backoff()
        self._attached = self._shared = False
        self._cursor: EntryId | None = None
        self._entries: int | None = None
        self._replay_until: EntryId = (0, 0)
        try:
            self._redis: Any = redis.Redis.from_url(
                url.server,
                protocol=2,
                socket_timeout=SECONDS,
                socket_connect_timeout=SECONDS,
                retry=Retry(NoBackoff(), 0),
            )
            self._redis.ping()
        except (ValueError, TypeError) as error:
            raise ConfigError([Problem(f"is not a Redis URL ({error})", "place", self.name, EXAMPLE)]) from error
        except redis.RedisError as error:
            raise ServerError(f"{self.name}: {redis_failure(error)}") from error

    def seek(self, position: Position | None) -> None:
        self._cursor = self._entries = None
        if position is not None:
            check_position(position, "redis", stream=self.stream)
            self._cursor = _parse_id(position_value(position, "id", str))
            self._entries = position.get("entries")
        self._attached = False
        self._retry(self._attach, time.monotonic() + SECONDS)

    def read(self, max_events: int, timeout: float) -> EventBatch | None:
        deadline = time.monotonic() + timeout
        count = min(max_events, MOST)
        found = self._retry(lambda: self._fetch(count, deadline), deadline)
        entries, lost = found or ([], 0)
        if entries:
            self._cursor = _parse_id(entries[-1][0])
        events, malformed = self._decoder.decode(
            ((f"{self.stream}/{name.decode()}", fields) for name, fields in entries), self._parse, _shown
        )
        if lost:
            log.warning("%s: %d entries of %s were trimmed before they were read", self.name, lost, self.stream)
        return EventBatch(events, self._position, malformed, lost, drained=len(entries) < count)

    def acknowledge(self, position: Position) -> None:
        """Acknowledge the entries up to the position. During an outage they stay pending until the next call."""
        check_position(position, "redis", stream=self.stream)
        until = position_value(position, "id", str)

        def acknowledge() -> None:
            while pending := self._redis.xpending_range(self.stream, self.group, "-", until, MOST):
                self._redis.xack(self.stream, self.group, *(entry["message_id"] for entry in pending))

        self._retry(acknowledge, time.monotonic())

    def lag(self) -> int | None:
        """The number of entries after the last one read; None during an outage and before Redis 7."""
        info = self._retry(lambda: self._redis.xinfo_stream(self.stream), time.monotonic())
        added = None if info is None else info.get("entries-added")
        return None if added is None or self._entries is None else max(0, added - self._entries)

    def close(self) -> None:
        self._redis.close()
        self._decoder.close()

    @property
    def _position(self) -> Position:
        id = _write_id(self._cursor or (0, 0))
        return {"source": "redis", "stream": self.stream, "id": id, "entries": self._entries}

    def _retry(self, call: Callable[[], Result], deadline: float) -> Result | None:
        """Call until it succeeds, waiting longer after each failure; None if it did not until the deadline."""
        import redis

        while True:
            try:
                if not self._attached and call != self._attach:
                    self._attach()
                result = call()
            except redis.AuthenticationError as error:
                raise ServerError(f"{self.name}: {redis_failure(error)}") from error
            except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError) as error:
                self._handle(error)
            else:
                if self._backoff.failures:
                    log.warning("%s is reachable again", self.name)
                    self._backoff.reset()
                return result
            remaining = deadline - time.monotonic()
            self._backoff.wait(remaining)
            if remaining <= 0:
                return None

    def _handle(self, error: Exception) -> None:
        """Log a temporary failure; raise any other."""
        import redis

        message = str(error)
        if isinstance(error, redis.ResponseError):
            if any(word in message for word in _MISSING):
                log.warning(
                    "%s: the stream %s or its group was deleted; both are created again", self.name, self.stream
                )
            elif not message.startswith(_TEMPORARY):
                raise ServerError(f"{self.name}, stream {self.stream}: {message}") from error
        if not self._backoff.failures:
            log.warning("%s: %s; trying again until it works", self.name, message)
        self._attached = False

    def _attach(self) -> None:
        """Make sure that the group exists, and find out what to read again."""
        self._create_group()
        stream, group = self._redis.xinfo_stream(self.stream), self._group()
        delivered = _parse_id(group["last-delivered-id"])
        if self._cursor is None:
            self._cursor, self._entries = self._where_the_group_is(stream, group, delivered)
        if _parse_id(stream["last-generated-id"]) < self._cursor:
            log.warning("%s: the stream %s was emptied or lost its last entries", self.name, self.stream)
            # New entries then get ids after those that were read, whatever the clock says.
            self._redis.execute_command("XSETID", self.stream, _write_id(self._cursor))
            self._entries = min(self._entries or 0, stream.get("entries-added", 0))
        if delivered < self._cursor:
            self._redis.xgroup_setid(self.stream, self.group, _write_id(self._cursor))
        self._replay_until = delivered
        self._attached = True

    def _create_group(self) -> None:
        import redis

        start = _write_id(self._cursor or (0, 0))
        try:
            self._redis.xgroup_create(self.stream, self.group, id=start, mkstream=True)
        except redis.ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    def _group(self) -> dict[str, Any]:
        groups = self._redis.xinfo_groups(self.stream)
        found: dict[str, Any] = next(one for one in groups if one["name"] == self.group.encode())
        return found

    def _where_the_group_is(
        self, stream: Mapping[str, Any], group: Mapping[str, Any], delivered: EntryId
    ) -> tuple[EntryId, int | None]:
        """The last entry before those that are not acknowledged, and how many entries came up to it."""
        read = group.get("entries-read")
        entries = _removed(stream) if read is None else read - group["pending"]
        if not group["pending"]:
            return delivered, entries
        return _before(_parse_id(self._redis.xpending(self.stream, self.group)["min"])), entries

    def _fetch(self, count: int, deadline: float) -> tuple[list[tuple[bytes, dict[bytes, bytes]]], int]:
        """The next entries, and how many were trimmed before them. Waits until the deadline for the first."""
        assert self._cursor is not None
        while True:
            if self._cursor < self._replay_until:
                stream, entries = self._read_again(count)
            else:
                stream, entries = self._read_new(count)
            lost = 0
            if (removed := _removed(stream)) is not None:
                self._entries = removed if self._entries is None else self._entries
                lost = max(0, removed - self._entries)
                self._entries += lost + len(entries)
            if entries or lost:
                return entries, lost
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return [], 0
            if self._cursor >= self._replay_until:
                wait = max(1, int(1000 * min(BLOCK_SECONDS, remaining)))
                self._redis.xread({self.stream: _write_id(self._cursor)}, count=1, block=wait)

    def _read_again(self, count: int) -> tuple[dict[str, Any], list[Any]]:
        """Entries that the group has delivered before, to this consumer or to another."""
        assert self._cursor is not None
        pipeline = self._redis.pipeline(transaction=True)
        pipeline.xinfo_stream(self.stream)
        pipeline.xrange(self.stream, f"({_write_id(self._cursor)}", _write_id(self._replay_until), count=count)
        stream, entries = pipeline.execute()
        if not entries:
            self._cursor = self._replay_until
        return stream, entries

    def _read_new(self, count: int) -> tuple[dict[str, Any], list[Any]]:
        """Entries that the group has not delivered yet."""
        assert self._cursor is not None
        pipeline = self._redis.pipeline(transaction=True)
        pipeline.xinfo_stream(self.stream)
        pipeline.xinfo_groups(self.stream)
        pipeline.xreadgroup(self.group, self.consumer, {self.stream: ">"}, count=count)
        stream, groups, answer = pipeline.execute()
        group = next(one for one in groups if one["name"] == self.group.encode())
        entries = answer[0][1] if answer else []
        delivered = _parse_id(group["last-delivered-id"])
        if delivered > self._cursor:
            if not self._shared:
                log.warning("%s: another consumer reads in the group %s; use one group each", self.name, self.group)
            self._shared = True
            self._replay_until = _parse_id(entries[-1][0]) if entries else delivered
            return self._read_again(count)
        return stream, [entry for entry in entries if _parse_id(entry[0]) > self._cursor]

    def _parse(self, fields: dict[bytes, bytes] | None) -> StreamRecord | Malformed:
        if len(fields or {}) == 1:
            [(name, value)] = (fields or {}).items()
            if name.decode("utf-8", "replace") in JSON_FIELDS:
                return self._decoder.parser.parse_json(value)
        try:
            record = {name.decode(): value.decode() for name, value in (fields or {}).items()}
        except UnicodeDecodeError:
            return Malformed("a field is not UTF-8 text")
        return self._decoder.parser.parse(record, text=True)


def redis_failure(error: Exception) -> str:
    """What Redis or its client says, without the full stop, and what to do."""
    import redis

    if isinstance(error, redis.AuthenticationError):
        remedy = "check the user and the password of the URL"
    else:
        remedy = "check that Redis is running and reachable"
    return f"{str(error).rstrip('. ')}; {remedy}"


def _removed(stream: Mapping[str, Any]) -> int | None:
    """How many entries the stream has had and no longer has; None before Redis 7."""
    added = stream.get("entries-added")
    return None if added is None else int(added) - int(stream["length"])


def _parse_id(id: bytes | str) -> EntryId:
    moment, _, number = (id.decode() if isinstance(id, bytes) else id).partition("-")
    try:
        return int(moment), int(number)
    except ValueError:
        raise DataError(Problem("is not the id of an entry of a Redis stream", "id", id)) from None


def _write_id(id: EntryId) -> str:
    return f"{id[0]}-{id[1]}"


def _before(id: EntryId) -> EntryId:
    return (id[0], id[1] - 1) if id[1] else (id[0] - 1, 2**64 - 1)


def _shown(fields: dict[bytes, bytes] | None) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in (fields or {}).items()}


def _text(value: bytes) -> str:
    return value[:4096].decode("utf-8", "backslashreplace")
