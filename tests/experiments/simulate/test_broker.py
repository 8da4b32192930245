"""Events come back complete and in order: from a file, from a private Redis, and from a given one."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pathdex.data.events import Event
from pathdex.errors import ConfigError, ServerError
from pathdex.experiments.simulate import broker
from pathdex.experiments.simulate.broker import SHARED, EventLog, open_log
from tests.data.event_sources.conftest import Broker, need, redis_broker

__all__ = ["redis_broker"]
EVENTS = [Event(number % 3, number, float(number)) for number in range(20)]


def check(log: EventLog) -> None:
    """Two readers, each from the beginning, up to the present."""
    first, second = log.reader("first"), log.reader("second")
    try:
        assert first.read() == []
        log.append(EVENTS[:8])
        assert first.read() == EVENTS[:8]
        log.append(EVENTS[8:])
        assert first.read() == EVENTS[8:]
        assert second.read() == EVENTS
        assert first.read() == []
    finally:
        first.close()
        second.close()


def test_a_file(tmp_path: Path) -> None:
    with open_log("file", tmp_path, [SHARED]) as log:
        check(log)
    assert (tmp_path / "events.jsonl").exists()


def test_a_file_of_an_interrupted_simulation_is_emptied(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"user": 1, "item": 2}\n')
    with open_log("file", tmp_path, [SHARED]) as log:
        check(log)


def test_a_private_redis_that_ends_with_the_block(tmp_path: Path) -> None:
    need("redis-server")
    with open_log("auto", tmp_path, [SHARED]) as log:
        assert log.place.startswith("redis://127.0.0.1:")
        check(log)
        port = urlsplit(log.place).port
    assert list(tmp_path.iterdir()) == []
    with socket.socket() as connection:
        assert connection.connect_ex(("127.0.0.1", port)) != 0


def test_without_redis_auto_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with open_log("auto", tmp_path, [SHARED]) as log:
        assert log.place == str(tmp_path / "events.jsonl")


def test_a_given_redis(redis_broker: Broker, tmp_path: Path) -> None:
    with open_log(f"{redis_broker.address}?stream=given", tmp_path, [SHARED]) as log:
        check(log)


def test_a_used_stream_is_rejected(redis_broker: Broker, tmp_path: Path) -> None:
    with open_log(f"{redis_broker.address}?stream=used", tmp_path, [SHARED]) as log:
        log.append(EVENTS)
        with pytest.raises(ConfigError, match="the stream holds 20 events already; name a new stream"):
            log.reader("late")


@pytest.mark.parametrize("place", ["file", "redis"])
def test_isolated_streams(place: str, redis_broker: Broker, tmp_path: Path) -> None:
    url = "file" if place == "file" else f"{redis_broker.address}?stream=isolated"
    with open_log(url, tmp_path, ["a", "b"]) as log:
        readers = {name: log.reader(name, name) for name in ("a", "b")}
        log.append(EVENTS[:5], "a")
        log.append(EVENTS[5:], "b")
        assert readers["a"].read() == EVENTS[:5]
        assert readers["b"].read() == EVENTS[5:]
        for reader in readers.values():
            reader.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("kafka://host/topic", "is not a Redis; pass auto, file or redis://host:6379/0?stream=simulation"),
        ("rediss", "is not a Redis"),
        ("redis://host:6379/0", "must name a stream and no group: every arm has its own"),
        ("redis://host:6379/0?stream=a&group=b", "must name a stream and no group"),
    ],
)
def test_bad_brokers(url: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error, open_log(url, tmp_path, [SHARED]):
        pass
    assert message in str(error.value)


def test_events_that_do_not_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "READ_SECONDS", 0.0)
    with open_log("file", tmp_path, [SHARED]) as log:
        reader = log.reader("arm")
        log.appended[SHARED] = 1
        with pytest.raises(ServerError, match="events were lost; check the broker, then start again"):
            reader.read()
        reader.close()


def test_a_redis_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(broker, "START_SECONDS", 0.0)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: "true")
    message = "redis-server did not start on port .*; use --broker file"
    with pytest.raises(ServerError, match=message), open_log("auto", tmp_path, [SHARED]):
        pass
