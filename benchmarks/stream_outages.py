"""What a stream must survive besides kills: a full disk, a broker that is gone, poison events, clocks that jump back.

Each outage returns what went wrong and what the stream said about it. `tests/test_stream_faults.py` runs them too.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.killable import Command, wait_until
from benchmarks.stream_checks import accounting_errors
from benchmarks.stream_processes import STREAM, RedisServer, encode_event, write_lines
from pathdex.data.events import Event
from pathdex.errors import PathdexError
from pathdex.experiments.stream_folder import read_stream_state

HISTORY = 20
OPTIONS = [
    "--embedding-dim",
    "16",
    "--num-nodes",
    "32",
    "--structure-hidden",
    "16",
    "--history-length",
    str(HISTORY),
    "--replay-history",
    str(HISTORY),
]
OPTIONS += ["--batch-events", "64", "--m-step-events", "700", "--checkpoint-seconds", "0.1", "--publish-seconds", "0.1"]
"""A small model, so that most of the time goes to what is tested."""
DISK_MB = 64
POISON = [
    b"",
    b"{",
    b"[]",
    b'{"user": 1}',
    b'{"user": 1, "item": 2, "time": 1700000000000}',
    b"\xff\xfe",
    b'{"item": {}}',
]


def full_disk(events: list[Event], folder: Path, seconds: float) -> dict[str, Any]:
    """The disk of the stream's folder fills up and has space again: learning goes on, and nothing is lost."""
    file, said = folder / "growing.jsonl", folder / "disk.log"
    half = len(events) // 2
    write_lines(file, events[:half])
    with small_disk(folder / "disk") as disk:
        if disk is None:
            return {"skipped": "a small file system can only be mounted by root", "errors": []}
        live = disk / "live"
        stream = Command(["stream", str(file), "--follow", "--out", str(live), *OPTIONS], said)
        try:
            wait_until(lambda: events_of(live) >= half, 120, "the first half")
            ballast = disk / "ballast"
            _fill(ballast)
            with file.open("ab") as more:
                more.write(b"".join(encode_event(event) + b"\n" for event in events[half:]))
            wait_until(lambda: "No space left" in said.read_text(), 60, "a message about the full disk")
            time.sleep(seconds)
            survived = stream.is_running
            ballast.unlink()
            wait_until(lambda: events_of(live) >= len(events) or not stream.is_running, 120, "the second half")
            code = stream.stop()
            errors = accounting_errors(live, events, HISTORY)
        finally:
            stream.kill()
    errors += [] if survived else ["the stream ended"]
    errors += [] if code == 0 else [f"the stream exited with code {code}"]
    return {"errors": errors, "message": _line_with(said, "No space left")}


def broker_gone(events: list[Event], folder: Path, seconds: float, *, frozen: bool) -> dict[str, Any]:
    """The broker hangs (SIGSTOP) or is down; afterwards the stream continues by itself."""
    said, live, half = folder / "broker.log", folder / "live", len(events) // 2
    with RedisServer(folder / "redis") as redis:
        _add(redis, events, 0, half)
        stream = Command(["stream", redis.source, "--out", str(live), *OPTIONS], said)
        try:
            wait_until(lambda: events_of(live) >= half, 120, "the first half")
            if frozen:
                redis.process.send_signal(signal.SIGSTOP)
            else:
                redis.kill()
            time.sleep(max(seconds, 7.0 if frozen else 0.0))
            survived = stream.is_running
            if frozen:
                redis.process.send_signal(signal.SIGCONT)
            else:
                redis.start()
            _add(redis, events, half, len(events))
            wait_until(lambda: events_of(live) >= len(events) or not stream.is_running, 120, "the second half")
            code = stream.stop()
        finally:
            stream.kill()
    errors = accounting_errors(live, events, HISTORY)
    errors += [] if survived else ["the stream ended"]
    errors += [] if code == 0 else [f"the stream exited with code {code}"]
    if "trying again" not in said.read_text() or "reachable again" not in said.read_text():
        errors.append("the log does not say that the broker was gone and came back")
    return {"errors": errors, "message": _line_with(said, "trying again")}


def poison_events(events: list[Event], folder: Path, seconds: float) -> dict[str, Any]:
    """Malformed events between good ones are set aside with the reason; the good ones count."""
    said, live = folder / "poison.log", folder / "live"
    with RedisServer(folder / "redis") as redis:
        client = redis.client()
        for place, event in enumerate(events):
            if place % 10 == 0:
                client.xadd(STREAM, {"event": POISON[place // 10 % len(POISON)]})
            client.xadd(STREAM, {"event": encode_event(event)})
        client.xadd(STREAM, {"nonsense": b"\xff"})
        poisoned = -(-len(events) // 10) + 1
        stream = Command(["stream", redis.source, "--out", str(live), *OPTIONS], said)
        try:
            wait_until(lambda: events_of(live) >= len(events), 120, "the last event")
            code = stream.stop()
        finally:
            stream.kill()
    letters = (live / "state" / "dead-letters.jsonl").read_text().splitlines()
    errors = accounting_errors(live, events, HISTORY) + ([] if code == 0 else [f"the stream exited with code {code}"])
    if len(letters) != poisoned:
        errors.append(f"{len(letters)} dead letters instead of {poisoned}")
    return {"errors": errors, "message": _line_with(said, "malformed events are")}


def clock_back(events: list[Event], folder: Path, seconds: float) -> dict[str, Any]:
    """The producers' clock jumps back by a day: events count, and histories stay in the order of time."""
    said, live, half = folder / "clock.log", folder / "live", len(events) // 2
    back = [Event(one.user, one.item, (one.time or 0) - 86_400 * (place >= half)) for place, one in enumerate(events)]
    file = write_lines(folder / "back.jsonl", back)
    stream = Command(["stream", str(file), "--out", str(live), *OPTIONS], said)
    code = stream.wait()
    errors = [] if code == 0 else [f"the stream exited with code {code}"]
    counters = read_stream_state(live).values["counters"]
    known = {event.user for event in back[:half]}
    late = sum(event.user in known for event in back[half:])
    for name, expected in (("events", len(back)), ("learned", len(back)), ("late", late)):
        if counters[name] != expected:
            errors.append(f"{name}: {counters[name]} instead of {expected}")
    return {"errors": errors, "message": f"{late} of {len(back)} events are counted as late"}


def two_trainers(events: list[Event], folder: Path, seconds: float) -> dict[str, Any]:
    """A second trainer on the same folder is refused with the name of the first, which does not notice."""
    live = folder / "live"
    file = write_lines(folder / "events.jsonl", events)
    arguments = ["stream", str(file), "--follow", "--out", str(live), *OPTIONS]
    first = Command(arguments, folder / "first.log")
    try:
        wait_until(lambda: events_of(live) > 0, 120, "the first checkpoint")
        second = Command(arguments, folder / "second.log")
        refused = second.wait(60)
        wait_until(lambda: events_of(live) >= len(events), 120, "the last event")
        code = first.stop()
    finally:
        first.kill()
    errors = accounting_errors(live, events, HISTORY) + ([] if code == 0 else [f"the stream exited with code {code}"])
    message = _line_with(folder / "second.log", "in use by")
    if refused != 1 or not message:
        errors.append(f"the second trainer exited with code {refused}")
    return {"errors": errors, "message": message}


OUTAGES: dict[str, Callable[[list[Event], Path, float], dict[str, Any]]] = {
    "full disk": full_disk,
    "broker down": lambda events, folder, seconds: broker_gone(events, folder, seconds, frozen=False),
    "broker hangs": lambda events, folder, seconds: broker_gone(events, folder, seconds, frozen=True),
    "poison events": poison_events,
    "clock jumps back": clock_back,
    "two trainers": two_trainers,
}


def run(events: list[Event], folder: Path, *, seconds: float) -> dict[str, dict[str, Any]]:
    """All outages; `seconds` is how long disk or broker are gone."""
    found = {}
    for name, outage in OUTAGES.items():
        place = folder / name.replace(" ", "-")
        place.mkdir()
        found[name] = outage(events[:1000], place, seconds)
    return found


def table(outages: dict[str, dict[str, Any]]) -> Table:
    shown = Table("outage", "errors", "message", title="Outages")
    for name, one in outages.items():
        shown.add_row(name, "; ".join(one["errors"][:3]) or one.get("skipped", "none"), one.get("message", ""))
    return shown


def events_of(live: Path) -> int:
    """The events in the last checkpoint, which another process may be writing."""
    try:
        return int(read_stream_state(live).values["counters"]["events"])
    except (PathdexError, OSError):
        return 0


@contextmanager
def small_disk(place: Path) -> Iterator[Path | None]:
    """A file system of a few MB at `place`; None if it cannot be mounted."""
    place.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _fill(file: Path) -> None:
    """Take all space that is left."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT)
    try:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    os.write(handle, b"\0" * size)
            except OSError:
                pass
    finally:
        os.close(handle)


def _add(redis: RedisServer, events: list[Event], first: int, end: int) -> None:
    client = redis.client()
    for place in range(first, end):
        client.xadd(STREAM, {"event": encode_event(events[place])}, id=f"{place + 1}-0")


def _line_with(log: Path, text: str) -> str:
    return next((line.strip() for line in log.read_text().splitlines() if text in line), "")
