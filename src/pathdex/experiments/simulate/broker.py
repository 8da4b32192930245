"""The event log: a private Redis, a given one, or a file. All events go through it, also those of the warm-up."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pathdex.data.event_sinks import append_events
from pathdex.data.event_sources import open_source
from pathdex.data.event_sources.broker_url import without_password
from pathdex.data.events import Event
from pathdex.errors import ConfigError, Problem, ServerError
from pathdex.system import REDIS

AUTO, FILE = "auto", "file"
SCHEMES = ("redis", "rediss", "unix")
PROGRAM = "redis-server"
STREAM = "events"
SHARED = "shared"
"""The stream that all arms read, unless their events are isolated."""
START_SECONDS = 20.0
READ_SECONDS = 30.0
"""Events that were appended must arrive within this time."""
CHUNK = 5000


class EventLog:
    """Append-only streams of events, each read by any number of readers from its beginning."""

    def __init__(self, place: str, streams: Sequence[str]) -> None:
        """`place` is a Redis URL with a stream, or a file ending in .jsonl; `streams` are the names of the streams."""
        self.place, self.shown = place, without_password(place)
        self.appended = dict.fromkeys(streams, 0)
        for stream in streams:
            if "://" not in place:
                Path(self._of(stream)).write_bytes(b"")

    def _of(self, stream: str) -> str:
        if stream == SHARED:
            return self.place
        if "://" not in self.place:
            return f"{self.place.removesuffix('.jsonl')}-{stream}.jsonl"
        return self.place.replace(f"stream={_stream_name(self.place)}", f"stream={_stream_name(self.place)}-{stream}")

    def append(self, events: Sequence[Event], stream: str = SHARED) -> None:
        if events:
            append_events(self._of(stream), events)
            self.appended[stream] += len(events)

    def reader(self, name: str, stream: str = SHARED) -> LogReader:
        """A reader at the beginning of a stream, with a consumer group of its own."""
        return LogReader(self, name, stream)


class LogReader:
    """Reads a stream up to the present. Raises `ServerError` if what was appended does not arrive."""

    def __init__(self, log: EventLog, name: str, stream: str) -> None:
        self._log, self._stream, self.events = log, stream, 0
        place = log._of(stream)
        self._source = open_source(f"{place}&group={name}" if "://" in place else place, follow=True)
        self._source.seek(None)
        if "://" in place and (waiting := self._source.lag()):
            self._source.close()
            rule = f"the stream holds {waiting:,} events already"
            raise ConfigError([Problem(rule, "broker", log.shown, "name a new stream, as in ?stream=simulation-2")])

    def read(self) -> list[Event]:
        """All events since the last call."""
        found: list[Event] = []
        wanted = self._log.appended[self._stream] - self.events
        deadline = time.monotonic() + READ_SECONDS
        while len(found) < wanted:
            batch = self._source.read(min(CHUNK, wanted - len(found)), 1.0)
            if batch is None or batch.lost or (not batch.events and time.monotonic() > deadline):
                raise ServerError(f"{self._log.shown}: events were lost; check the broker, then start again")
            found += [one for one in batch.events if isinstance(one, Event)]
            self._source.acknowledge(batch.position)
        self.events += len(found)
        return found

    def close(self) -> None:
        self._source.close()


@contextmanager
def open_log(broker: str, folder: Path, streams: Sequence[str]) -> Iterator[EventLog]:
    """The log for `auto`, `file` or the URL of a Redis.

    `auto` starts a private Redis that ends with the block, or takes a file in `folder` if Redis is not installed.
    """
    if broker not in (AUTO, FILE):
        yield EventLog(_checked_url(broker), streams)
        return
    program = shutil.which(PROGRAM) or shutil.which(PROGRAM, path="/usr/sbin:/usr/local/sbin")
    if broker == FILE or program is None or not REDIS.available:
        yield EventLog(str(folder / f"{STREAM}.jsonl"), streams)
        return
    with _private_redis(program) as url:
        yield EventLog(f"{url}?stream={STREAM}", streams)


def _checked_url(broker: str) -> str:
    scheme, separator, _ = broker.partition("://")
    shown = without_password(broker)
    if not separator or scheme not in SCHEMES:
        remedy = f"pass {AUTO}, {FILE} or redis://host:6379/0?stream=simulation"
        raise ConfigError([Problem("is not a Redis", "broker", shown, remedy)])
    if not _stream_name(broker) or "group=" in broker:
        rule = "must name a stream and no group: every arm has its own"
        raise ConfigError([Problem(rule, "broker", shown, "pass redis://host:6379/0?stream=simulation")])
    REDIS.require()
    return broker


def _stream_name(url: str) -> str:
    options = dict(part.partition("=")[::2] for part in url.partition("?")[2].split("&"))
    return options.get("stream", "")


@contextmanager
def _private_redis(program: str) -> Iterator[str]:
    """A Redis on a free port of this machine that keeps nothing; yields its URL.

    A shell waits for the end of its input and then stops the server, so that none is left if this process is killed.
    """
    with tempfile.TemporaryDirectory(prefix="pathdex-simulate-") as folder:
        port = _free_port()
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
        script = '"$@" & read _; kill $!; wait'
        quiet = subprocess.DEVNULL
        # In a session of its own, Ctrl-C reaches this process only.
        process = subprocess.Popen(
            ["sh", "-c", script, "sh", program, *options],
            stdin=subprocess.PIPE,
            stdout=quiet,
            stderr=quiet,
            start_new_session=True,
        )
        try:
            _wait_for(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.communicate()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), 1.0) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(64).startswith(b"+PONG"):
                    return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise ServerError(f"{PROGRAM} did not start on port {port}; use --broker {FILE}")
        time.sleep(0.02)
