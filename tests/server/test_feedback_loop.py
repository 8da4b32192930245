"""The whole loop: a request to the server becomes an event of the stream, the trainer learns it, the server answers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pathdex
from pathdex.errors import PathdexError
from tests.cli.test_stream import FLAGS
from tests.data.event_sinks.conftest import redis_broker
from tests.data.event_sources.conftest import Broker
from tests.server.conftest import running

__all__ = ["redis_broker"]
SECONDS = 120


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


@contextmanager
def streaming(source: str, folder: Path, *options: str) -> Iterator[None]:
    """A trainer in a process of its own; it must end well."""
    command = [sys.executable, "-m", "pathdex", "stream", source, "--out", str(folder), *FLAGS, *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait()


def check_loop(place: str, folder: Path) -> None:
    wait_until(lambda: has_model(folder))
    with running(folder, events=place, watch=0.1) as server, pathdex.Client(server.url) as client:
        # From the first event of an item to an answer with it.
        client.add_events("ada", [1, 2, 3, "brand-new"])
        wait_until(lambda: client.has_item("brand-new"))
        assert "brand-new" in [one.id for one in client.recommend([3], 40, candidates=1000)]
        # From a new item without events to an answer with it, and back.
        client.add_items(["added"], like={"added": [1]})
        wait_until(lambda: client.has_item("added"))
        client.remove_items(["added", "brand-new"])
        assert "added" not in [one.id for one in client.recommend([3], 40, candidates=1000)]
        wait_until(lambda: not (client.has_item("added") or client.has_item("brand-new")))
        # An event does not bring it back.
        client.add_events("bob", ["brand-new", "another"])
        wait_until(lambda: client.has_item("another"))
        assert not client.has_item("brand-new")
        # Without any item, answers are empty, also those of a server that starts then. The next item is found again.
        left = [*range(25), "another"]
        client.remove_items(left)
        assert client.recommend([], 5) == []
        wait_until(lambda: client.model().items == 0)
        assert client.recommend([], 5) == []
        with running(folder, watch=0.1) as other, pathdex.Client(other.url) as second:
            assert second.recommend([], 5) == []
            assert second.model().health is None
            client.add_items(["next"])
            for one in (client, second):
                wait_until(lambda one=one: one.has_item("next"))
                assert [found.id for found in one.recommend([], 5)] == ["next"]


def has_model(folder: Path) -> bool:
    try:
        pathdex.load(folder)
    except PathdexError:
        return False
    return True


def first_events() -> list[dict[str, object]]:
    return [{"user": f"u{row % 40}", "item": (row % 40 + row // 40) % 25, "time": row} for row in range(400)]


def test_over_a_file(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in first_events()))
    with streaming(str(file), tmp_path / "live", "--follow"):
        check_loop(str(file), tmp_path / "live")


@pytest.mark.slow
def test_over_redis(tmp_path: Path, redis_broker: Broker) -> None:
    import redis

    place = f"{redis_broker.address}?stream=loop"
    with redis.Redis.from_url(redis_broker.address) as client:
        for one in first_events():
            client.xadd("loop", {"event": json.dumps(one)})
    with streaming(place, tmp_path / "live"):
        check_loop(place, tmp_path / "live")
