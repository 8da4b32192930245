"""The user store in a SQLite file, shared by all worker processes on a machine."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from pathdex.data.vocabulary import Id
from pathdex.errors import StorageError

T = TypeVar("T")
Append = Sequence[tuple[str, Sequence[Id]]]

BUSY_SECONDS = 5.0
"""How long to wait for a writer in another process."""
APPLICATION = 0x70617468
"""Marks a SQLite file as a user store: "path" in ASCII."""
_SCHEMA = f"""
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
BEGIN IMMEDIATE;
PRAGMA application_id={APPLICATION};
CREATE TABLE IF NOT EXISTS events (
  user TEXT NOT NULL, place INTEGER NOT NULL, item NOT NULL, PRIMARY KEY (user, place)
) WITHOUT ROWID;
COMMIT;
"""


class SqliteStore:
    """One thread writes and one reads, so the event loop never blocks on the disk.

    Group commit: all events that arrive during a commit form the next commit, so under load many requests share one
    sync. `synchronous=FULL` syncs the log before a commit returns, so acknowledged events survive kill -9 and power
    loss.
    """

    def __init__(self, path: Path, keep: int) -> None:
        self.path, self.keep = path, keep
        self._writer = _Connection(path)
        self._reader = _Connection(path)
        self._waiting: list[tuple[Append, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def append(self, events: Append) -> None:
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((events, stored))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        await stored

    async def histories(self, users: Sequence[str]) -> list[list[Id]]:
        return await self._reader.call(partial(_read, users=users, keep=self.keep))

    async def close(self) -> None:
        if self._writing is not None:
            await self._writing
        await self._writer.close()
        await self._reader.close()

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            failure: StorageError | None = None
            try:
                await self._writer.call(partial(_write, batch=[events for events, _ in batch], keep=self.keep))
            except StorageError as error:
                failure = error
            # A request may have timed out.
            for stored in (stored for _, stored in batch if not stored.done()):
                if failure is None:
                    stored.set_result(None)
                else:
                    stored.set_exception(failure)
        self._writing = None


class _Connection:
    """A SQLite connection and its thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="user-store")
        try:
            self._connection = self._thread.submit(self._guarded, lambda: _open(path)).result()
        except BaseException:
            self._thread.shutdown()
            raise

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._guarded, partial(work, self._connection))

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
        self._thread.shutdown()

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except sqlite3.Error as error:
            raise StorageError(f"user store {self.path}: {error}; check the file and the free disk space") from error


def _open(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write beside {path}: {error.strerror}; choose another path") from error
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        marked = connection.execute("PRAGMA application_id").fetchone()[0]
        others = connection.execute("SELECT count(*) FROM sqlite_master WHERE name <> 'events'").fetchone()[0]
        if marked != APPLICATION and others:
            rule = "is a SQLite file of another application; choose another path for the user store"
            raise StorageError(f"{path} {rule}")
        connection.executescript(_SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection


def _write(connection: sqlite3.Connection, *, batch: Sequence[Append], keep: int) -> None:
    # IMMEDIATE: the position of a new event depends on the last one, so no other process may write in between.
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for events in batch:
            for user, items in events:
                last = connection.execute("SELECT max(place) FROM events WHERE user = ?", (user,)).fetchone()[0] or 0
                rows = [(user, last + place, item) for place, item in enumerate(items, start=1)][-keep:]
                connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
                oldest = last + len(items) - keep
                connection.execute("DELETE FROM events WHERE user = ? AND place <= ?", (user, oldest))


def _read(connection: sqlite3.Connection, *, users: Sequence[str], keep: int) -> list[list[Id]]:
    question = "SELECT item FROM events WHERE user = ? ORDER BY place DESC LIMIT ?"
    return [[item for (item,) in connection.execute(question, (user, keep))][::-1] for user in users]
