"""Opens the source of events at a path or a URL."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pathdex.data.event_sources.base import EventDecoder, EventSource
from pathdex.data.event_sources.dead_letters import DeadLetters
from pathdex.data.event_sources.line_formats import DelimitedLines, JsonEventLines, LineFormat
from pathdex.data.event_sources.line_source import LineSource
from pathdex.data.event_sources.parquet_source import ParquetSource
from pathdex.data.event_sources.stdin_source import StdinSource
from pathdex.data.events import EventParser
from pathdex.errors import ConfigError, DataError, Problem, did_you_mean

STDIN = "-"


def open_source(
    place: str | os.PathLike[str],
    *,
    follow: bool = False,
    user: str | None = None,
    item: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    dead_letters: DeadLetters | str | os.PathLike[str] | None = None,
) -> EventSource:
    """Open a stream of events.

    `place` is a file (`.jsonl`, `.csv`, `.tsv`, also `.gz`; `.parquet`), a folder of Parquet files, `-` for standard
    input, or a URL: `redis://host:6379/0?stream=events`, `nats://host:4222?stream=events`, `kafka://host:9092/topic`.

    With `follow`, files have no end: what is appended is read, also after rotation, and so are new files of a folder.
    Brokers have no end in any case. `user`, `item`, `time` and `weight` name the keys, which otherwise are found by
    common names. Malformed events are written to the file `dead_letters`, if given, and logged otherwise.
    """
    parser = EventParser(user=user, item=item, time=time, weight=weight)
    opener = _opener(os.fspath(place), follow)
    if dead_letters is not None and not isinstance(dead_letters, DeadLetters):
        dead_letters = DeadLetters(Path(dead_letters))
    decoder = EventDecoder(parser, dead_letters)
    try:
        return opener(decoder)
    except BaseException:
        decoder.close()
        raise


def _opener(place: str, follow: bool) -> Callable[[EventDecoder], EventSource]:
    if place == STDIN:
        return StdinSource
    scheme, separator, _ = place.partition("://")
    if separator:
        if scheme not in SCHEMES:
            known = ", ".join(f"{one}://" for one in SCHEMES)
            rule = f"the scheme {scheme}:// is unknown; known are {known}{did_you_mean(scheme, SCHEMES)}"
            raise ConfigError([Problem(rule, "place", f"{scheme}://...", "or pass a file, a folder or -")])
        return lambda decoder: SCHEMES[scheme](place, decoder)
    path = Path(place)
    if not path.exists():
        raise DataError(Problem(f"{path} does not exist", remedy="check the path, or create the file first"))
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if path.is_dir() or suffix in (".parquet", ".pq"):
        return lambda decoder: ParquetSource(path, decoder, follow=follow)
    if suffix not in LINE_FORMATS:
        known = ", ".join([*LINE_FORMATS, ".parquet", ".pq"])
        rule = f"{path}: the suffix {suffix!r} is unknown; known are {known} (text also with .gz)"
        raise DataError(Problem(rule, remedy="rename the file, or pipe it to standard input (-) as JSON lines"))
    return lambda decoder: LineSource(path, LINE_FORMATS[suffix](decoder.parser), decoder, follow=follow)


def _open_redis(place: str, decoder: EventDecoder) -> EventSource:
    from pathdex.data.event_sources.redis_source import RedisSource

    return RedisSource(place, decoder)


def _open_nats(place: str, decoder: EventDecoder) -> EventSource:
    from pathdex.data.event_sources.nats_source import NatsSource

    return NatsSource(place, decoder)


def _open_kafka(place: str, decoder: EventDecoder) -> EventSource:
    from pathdex.data.event_sources.kafka_source import KafkaSource

    return KafkaSource(place, decoder)


SCHEMES: dict[str, Callable[[str, EventDecoder], EventSource]] = {
    "redis": _open_redis,
    "rediss": _open_redis,
    "unix": _open_redis,
    "nats": _open_nats,
    "tls": _open_nats,
    "kafka": _open_kafka,
}
LINE_FORMATS: dict[str, Callable[[EventParser], LineFormat]] = {
    ".jsonl": JsonEventLines,
    ".ndjson": JsonEventLines,
    ".csv": lambda parser: DelimitedLines(parser, ","),
    ".tsv": lambda parser: DelimitedLines(parser, "\t"),
}
