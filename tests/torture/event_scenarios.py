"""Scenarios of events: the user store, the histories of a stream, the sink, and dead letters."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pathdex.data.event_sinks.file_sink import FileSink
from pathdex.data.event_sources.dead_letters import DeadLetter, DeadLetters
from pathdex.data.events import Event
from pathdex.errors import PathdexError
from pathdex.server import sqlite_store
from pathdex.server.sqlite_store import SqliteStore
from pathdex.server.stores import owned_store
from pathdex.training.stream import histories
from pathdex.training.stream.histories import UserHistories
from tests.torture.scenario import Scenario

NOTHING = "nothing"
# So that a few events fill the cache, and the log is written back.
_SMALL = "PRAGMA wal_autocheckpoint=3; PRAGMA cache_size=2;"


class Store(Scenario):
    """Events of users are appended; old ones are dropped, and the log is written back to the file meanwhile."""

    steps = 6

    def open(self, root: Path) -> Any:
        if _SMALL not in sqlite_store._OPEN:
            sqlite_store._OPEN += _SMALL
        return SqliteStore(root / "inner" / "users.sqlite", 4)

    def step(self, session: Any, number: int) -> None:
        # Long ones do not fit into the cache: they are written before the commit.
        item = f"item {number}" + "." * (3000 if number == 2 else 0)
        events = [(f"user {user}", [10 * number + user, item]) for user in range(number, number + 3)]
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


class OwnedStore(Store):
    """The store of a server, which locks it first."""

    steps = 2

    def open(self, root: Path) -> Any:
        with ExitStack() as stack:
            stack.enter_context(owned_store(str(root / "inner" / "users.sqlite")))
            store = super().open(root)
            return store, stack.pop_all()

    def step(self, session: Any, number: int) -> None:
        super().step(session[0], number)

    def close(self, session: Any) -> None:
        with session[1]:
            super().close(session[0])


class Histories(Scenario):
    """Journals of checkpoints are written to the file of histories, in transactions that outgrow the cache."""

    steps = 4
    KEEP, USERS = 8, 150

    def open(self, root: Path) -> Any:
        if _SMALL not in histories._SCHEMA:
            histories._SCHEMA += _SMALL
        return UserHistories(self.KEEP, root / "inner" / "histories.sqlite")

    def step(self, session: Any, number: int) -> None:
        changed = UserHistories(self.KEEP)
        for user in range(40 * number, 40 * number + self.USERS):
            for token in range(self.KEEP):
                changed.append(f"user {user}", 100 * number + token, float(number))
        session.recover(changed.journal(), number + 1)

    def close(self, session: Any) -> None:
        session.close()

    def state(self, root: Path) -> str:
        file = root / "inner" / "histories.sqlite"
        if not file.exists():
            return NOTHING
        found = UserHistories(self.KEEP, file)
        try:
            rows = [found.tokens(f"user {user}") for user in range(40 * self.steps + self.USERS)]
            content = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
            return NOTHING if found.committed is None else f"{found.committed} {content}"
        finally:
            found.close()


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


class FirstLetters(Letters):
    """The same in a folder that does not exist yet."""

    steps = 1

    def prepare(self, root: Path) -> None:
        pass


class DroppedError(PathdexError):
    """Letters were dropped and counted: for a stream no error, but for the test the step is not done."""


def _letter(line: bytes) -> list[int] | None:
    try:
        return [int(one) for one in json.loads(line)["raw"].split()]
    except (ValueError, TypeError, KeyError):
        return None
