"""Scenarios of events: the user store, the sink, and dead letters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pathdex.data.event_sinks.file_sink import FileSink
from pathdex.data.event_sources.dead_letters import DeadLetter, DeadLetters
from pathdex.data.events import Event
from pathdex.errors import PathdexError
from pathdex.server import sqlite_store
from pathdex.server.sqlite_store import SqliteStore
from tests.torture.scenario import Scenario


class Store(Scenario):
    """Events of users are appended; old ones are dropped, and the log is written back to the file meanwhile."""

    steps = 6
    unpromised = ("users.sqlite",)
    # SQLite has its own words.
    messages = dict.fromkeys(
        ["full disk", "failing disk"], "check the (path and the )?file|free space|Input/output|No space"
    )

    def open(self, root: Path) -> Any:
        # Small, so that the log is written back.
        schema = sqlite_store._OPEN
        if "autocheckpoint" not in schema:
            sqlite_store._OPEN = schema + "PRAGMA wal_autocheckpoint=3;"
        return SqliteStore(root / "inner" / "users.sqlite", 4)

    def step(self, session: Any, number: int) -> None:
        events = [(f"user {user}", [10 * number + user, f"item {number}"]) for user in range(number, number + 3)]
        asyncio.run(session.append(events))

    def close(self, session: Any) -> None:
        asyncio.run(session.close())

    def state(self, root: Path) -> str:
        path = root / "inner" / "users.sqlite"
        if not path.exists():
            return json.dumps([[]] * 9)
        store = SqliteStore(path, 4)
        try:
            return json.dumps(asyncio.run(store.histories([f"user {user}" for user in range(9)])))
        finally:
            asyncio.run(store.close())


class Sink(Scenario):
    """Records are appended to a file. Of an append that did not return, any part may be there."""

    steps = 4
    RECORDS = 5

    def prepare(self, root: Path) -> None:
        (root / "inner").mkdir()

    def open(self, root: Path) -> Any:
        return FileSink(root / "inner" / "events.jsonl")

    def step(self, session: Any, number: int) -> None:
        session.append([Event(number, item, 1.0) for item in range(self.RECORDS)])

    def close(self, session: Any) -> None:
        session.close()

    def state(self, root: Path) -> str:
        path = root / "inner" / "events.jsonl"
        lines = path.read_bytes().split(b"\n") if path.exists() else []
        return json.dumps([record for record in map(_record, lines) if record])

    def following(self, found: str, done: int, states: Sequence[str]) -> int | None:
        kept = json.loads(found)
        acknowledged = all([step, item] in kept for step in range(done) for item in range(self.RECORDS))
        known = all(step <= done for step, _ in kept)
        return done if acknowledged and known else None

    def is_end(self, found: str, states: Sequence[str]) -> bool:
        return self.following(found, self.steps, states) is not None


def _record(line: bytes) -> list[Any] | None:
    try:
        record = json.loads(line)
        return [record["user"], record["item"]]
    except (ValueError, TypeError, KeyError):
        return None


class Letters(Sink):
    """Malformed events are written, and the file is rotated. A failure is counted, never raised."""

    def prepare(self, root: Path) -> None:
        super().prepare(root)
        (root / "inner" / "letters.jsonl").write_text('{"position": "a part that a crash left')

    def open(self, root: Path) -> Any:
        return DeadLetters(root / "inner" / "letters.jsonl", max_bytes=1000)

    def step(self, session: Any, number: int) -> None:
        before = session.dropped
        session.write([DeadLetter(f"{number}/{item}", "broken", f"{number} {item}") for item in range(self.RECORDS)])
        if session.dropped > before:
            session._keys.clear()
            raise DroppedError("No space left on device or Input/output error: dead letters were dropped")

    def state(self, root: Path) -> str:
        files = [root / "inner" / name for name in ("letters.jsonl.1", "letters.jsonl")]
        lines = b"\n".join(file.read_bytes() for file in files if file.exists()).split(b"\n")
        return json.dumps([record for record in map(_letter, lines) if record])


class DroppedError(PathdexError):
    """Letters were dropped and counted: for a stream no error, but for the test the step is not done."""


def _letter(line: bytes) -> list[int] | None:
    try:
        return [int(one) for one in json.loads(line)["raw"].split()]
    except (ValueError, TypeError, KeyError):
        return None
