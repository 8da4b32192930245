"""The user store in a SQLite file, shared by all worker processes on a machine."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from pathdex.data.vocabulary import Id
from pathdex.errors import StorageError
from pathdex.server.errors import is_full
from pathdex.storage.atomic import storage_errors
from pathdex.storage.filesystem import make_folders, sync

T = TypeVar("T")
Append = Sequence[tuple[str, Sequence[Id]]]

BUSY_SECONDS = 5.0
"""How long to wait for a writer in another process."""
APPLICATION = 0x70617468
"""Marks a SQLite file as a user store: "path" in ASCII."""
_OPEN = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
"""
_CREATE = f"""
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
    loss. Whatever a commit raises, its requests get an error, and the next commit starts from a new connection. A new
    file is readable by its owner only.
    """

    def __init__(self, path: Path, keep: int) -> None:
        self.path, self.keep = path, keep
        self._writer = _Connection(path)
        self._reader = _Connection(path)
        self._waiting: list[tuple[Append | str, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def append(self, events: Append) -> None:
        await self._commit(events)

    async def forget(self, user: str) -> None:
        await self._commit(user)

    async def _commit(self, change: Append | str) -> None:
        """Add events, or remove the history of a user, in the order of the calls."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, stored))
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
                await self._writer.call(partial(_write, batch=[change for change, _ in batch], keep=self.keep))
            except StorageError as error:
                failure = error
            except (Exception, asyncio.CancelledError) as error:
                failure = StorageError(f"user store {self.path}: {error!r}; see the log")
            # A request may have timed out.
            for stored in (stored for _, stored in batch if not stored.done()):
                if failure is None:
                    stored.set_result(None)
                else:
                    stored.set_exception(failure)
        self._writing = None


class _Connection:
    """A SQLite connection and its thread. After a failure, and if the file was replaced, it is opened again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="user-store")
        try:
            self._thread.submit(self._run, lambda _: None).result()
        except BaseException:
            self._thread.shutdown()
            raise

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown()

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            # Writing to a file that was removed would lose the events.
            if self._connection is None or _identity(self.path) != self._opened:
                self._disconnect()
                self._connection = _open(self.path)
                self._opened = _identity(self.path)
            return work(self._connection)
        except sqlite3.Error as error:
            self._disconnect()
            remedy = "free space on its disk" if is_full(error) else "check the file and the free disk space"
            raise StorageError(f"user store {self.path}: {error}; {remedy}") from error
        except BaseException:
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _open(path: Path) -> sqlite3.Connection:
    path = path.resolve()
    try:
        make_folders(path.parent)
        _create(path)
    except OSError as error:
        remedy = "free space" if is_full(error) else "choose another path"
        raise StorageError(f"cannot write {path}: {error.strerror}; {remedy}") from error
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        marked = connection.execute("PRAGMA application_id").fetchone()[0]
        others = connection.execute("SELECT count(*) FROM sqlite_master WHERE name <> 'events'").fetchone()[0]
        if marked != APPLICATION and others:
            rule = "is a SQLite file of another application; choose another path for the user store"
            raise StorageError(f"{path} {rule}")
        connection.executescript(_OPEN)
        if marked != APPLICATION:  # Else nothing is written, which would wait for other writers.
            connection.executescript(_CREATE)
        with storage_errors(path, "check the disk"):
            sync(path.parent)  # SQLite ignores it if the name of its log cannot be synced.
    except BaseException:
        connection.close()
        raise
    return connection


def _create(path: Path) -> None:
    """Create the file, with a mode that SQLite gives to its log and its index as well; `OSError` if it cannot be used.

    An existing file is not opened: closing it again would drop the locks that SQLite holds on it for another connection
    of this process. The next process that closes the file would remove a log that is still written to.
    """
    if not path.exists():
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    elif not path.is_file():
        raise OSError(errno.EISDIR if path.is_dir() else errno.EINVAL, "it is not a plain file")
    elif not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _write(connection: sqlite3.Connection, *, batch: Sequence[Append | str], keep: int) -> None:
    # IMMEDIATE: the position of a new event depends on the last one, so no other process may write in between.
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for events in batch:
            if isinstance(events, str):
                connection.execute("DELETE FROM events WHERE user = ?", (events,))
                continue
            for user, items in events:
                last = connection.execute("SELECT max(place) FROM events WHERE user = ?", (user,)).fetchone()[0] or 0
                rows = [(user, last + place, item) for place, item in enumerate(items, start=1)][-keep:]
                connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
                oldest = last + len(items) - keep
                connection.execute("DELETE FROM events WHERE user = ? AND place <= ?", (user, oldest))


def _read(connection: sqlite3.Connection, *, users: Sequence[str], keep: int) -> list[list[Id]]:
    question = "SELECT item FROM events WHERE user = ? ORDER BY place DESC LIMIT ?"
    return [[item for (item,) in connection.execute(question, (user, keep))][::-1] for user in users]
