"""Opens the sink at a path or a URL; appends to it in one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import islice
from pathlib import Path

from pathdex.data.event_sinks.base import CHUNK, EventSink
from pathdex.data.event_sinks.file_sink import FileSink
from pathdex.data.event_sinks.kafka_sink import KafkaSink
from pathdex.data.event_sinks.nats_sink import NatsSink
from pathdex.data.event_sinks.redis_sink import RedisSink
from pathdex.data.events import StreamRecord
from pathdex.errors import ConfigError, Problem, did_you_mean

SUFFIXES = (".jsonl", ".ndjson")
SCHEMES: dict[str, Callable[[str], EventSink]] = {
    **dict.fromkeys(("redis", "rediss", "unix"), RedisSink),
    **dict.fromkeys(("nats", "tls"), NatsSink),
    "kafka": KafkaSink,
}


def open_sink(place: str | os.PathLike[str]) -> EventSink:
    """A sink for records that `open_source` reads from the same place: a `.jsonl` file, or the URL of a broker.

    Nothing is connected before the first `append`. `ConfigError` if the place cannot be one.
    """
    where = os.fspath(place)
    scheme, separator, _ = where.partition("://")
    if separator:
        if scheme not in SCHEMES:
            rule = f"the scheme {scheme}:// is unknown{did_you_mean(scheme, SCHEMES)}"
            raise ConfigError([Problem(rule, "place", f"{scheme}://...", f"use a .jsonl file or {', '.join(SCHEMES)}")])
        return SCHEMES[scheme](where)
    path = Path(where)
    if path.suffix.lower() not in SUFFIXES:
        rule = f"events are appended as JSON lines, to a file that ends in {' or '.join(SUFFIXES)}"
        raise ConfigError([Problem(rule, "place", where, "rename it, or pass the URL of a broker")])
    return FileSink(path)


def append_events(place: str | os.PathLike[str], events: Iterable[StreamRecord]) -> int:
    """Append events and item changes in order, durably; returns their number."""
    rest, number = iter(events), 0
    with closing(open_sink(place)) as sink:
        while chunk := list(islice(rest, CHUNK)):
            sink.append(chunk)
            number += len(chunk)
    return number
