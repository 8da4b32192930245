"""The latest items of every user: bounded per user, evicted by age, and on disk when they outgrow memory.

Histories in memory are ahead of the file. A checkpoint takes a *journal* of the users that changed since the last one;
once the checkpoint is published, `commit` writes the journal to the file. If the process dies in between, the journal
in the checkpoint is committed again, which changes nothing if it was complete. So the file never holds an event that
the checkpoint does not.
"""

from __future__ import annotations

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.errors import StorageError
from pathdex.index.checks import check_int
from pathdex.storage.filesystem import make_folders, sync

USERS_IN_MEMORY = 200_000
"""Users that stay in memory, besides those that changed since the last checkpoint."""
_SCHEMA = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
CREATE TABLE IF NOT EXISTS histories (user TEXT PRIMARY KEY, last REAL NOT NULL, tokens BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_age ON histories (last);
CREATE TABLE IF NOT EXISTS commits (number INTEGER NOT NULL);
"""


@dataclass
class UserHistory:
    """The latest items of a user, oldest first, and the time of the last event."""

    tokens: list[int] = field(default_factory=list)
    last: float = -np.inf


class UserHistories:
    """Histories by user, at most `keep` items each."""

    def __init__(self, keep: int, file: Path | None = None, *, users_in_memory: int = USERS_IN_MEMORY) -> None:
        self.keep = check_int("keep", keep)
        self.users_in_memory = check_int("users_in_memory", users_in_memory)
        self._users: OrderedDict[str, UserHistory] = OrderedDict()
        self._changed: dict[str, None] = {}
        self._oldest = -np.inf
        """Users whose last event is older are forgotten."""
        self._file = None if file is None else _open(file)
        self._name = file

    def tokens(self, user: str) -> list[int]:
        """The items of a user, oldest first; empty for an unknown user. Do not change the list."""
        return self._history(user).tokens

    def last_time(self, user: str) -> float:
        """The time of the user's last event, or minus infinity."""
        return self._history(user).last

    def append(self, user: str, token: int, time: float) -> None:
        """Add an event at the end of a user's history."""
        history = self._history(user)
        history.tokens = [*history.tokens[-self.keep + 1 :], token] if self.keep > 1 else [token]
        # A user who was forgotten and returns with an old event is known again from now on.
        history.last = max(history.last, time, self._oldest)
        self._users[user] = history
        self._users.move_to_end(user)
        self._changed[user] = None

    def forget_before(self, time: float) -> None:
        """Forget users that had no event since then."""
        self._oldest = max(self._oldest, time)
        for user in [user for user, history in self._users.items() if history.last < self._oldest]:
            del self._users[user]
            self._changed.pop(user, None)

    def __len__(self) -> int:
        """The number of users with a history."""
        if self._file is None:
            return len(self._users)
        with self._guarded() as connection:
            count = "SELECT count(*) FROM histories WHERE last >= ?"
            stored: int = connection.execute(count, (self._oldest,)).fetchone()[0]
            known = sum(
                connection.execute(
                    "SELECT 1 FROM histories WHERE user = ? AND last >= ?", (user, self._oldest)
                ).fetchone()
                is not None
                for user in self._changed
            )
        return stored + len(self._changed) - known

    def journal(self) -> dict[str, NDArray[Any]]:
        """The users that changed since the last commit, as arrays; without a file, all users."""
        users = self._users if self._file is None else self._changed
        names = [user.encode("utf-8", "surrogatepass") for user in users]
        rows = [self._users[user] for user in users]
        return {
            "names": np.frombuffer(b"".join(names), np.uint8),
            "name_ends": np.cumsum([len(name) for name in names], dtype=np.int64),
            "tokens": np.array([token for row in rows for token in row.tokens], np.int64),
            "ends": np.cumsum([len(row.tokens) for row in rows], dtype=np.int64),
            "last": np.array([row.last for row in rows], np.float64),
            "oldest": np.array([self._oldest]),
        }

    def commit(self, number: int) -> None:
        """Write what has changed to the file, as part of checkpoint `number`."""
        if self._file is not None:
            with self._guarded() as connection, connection:
                rows = [(user, self._users[user].last, _packed(self._users[user].tokens)) for user in self._changed]
                connection.executemany("INSERT OR REPLACE INTO histories VALUES (?, ?, ?)", rows)
                connection.execute("DELETE FROM histories WHERE last < ?", (self._oldest,))
                connection.execute("DELETE FROM commits")
                connection.execute("INSERT INTO commits VALUES (?)", (number,))
        self._changed.clear()
        while self._file is not None and len(self._users) > self.users_in_memory:
            self._users.popitem(last=False)

    def recover(self, journal: Mapping[str, NDArray[Any]], number: int) -> None:
        """Return to the state of checkpoint `number`, whose journal this is."""
        self._users.clear()
        self._changed.clear()
        committed = self.committed
        if self._file is not None and number > 1 and (committed is None or committed < number - 1):
            raise StorageError(
                f"{self._name} belongs to checkpoint {committed or 0}, older than checkpoint {number}; "
                "restore both from one backup, or stream into a new folder"
            )
        if committed is not None and committed > number:
            raise StorageError(
                f"{self._name} belongs to checkpoint {committed}, newer than checkpoint {number}; "
                "restore both from one backup"
            )
        self._oldest = float(journal["oldest"][0])
        for user, history in _read_journal(journal):
            self._users[user] = history
            self._changed[user] = None
        self.commit(number)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _history(self, user: str) -> UserHistory:
        known = self._users.get(user)
        if known is not None or self._file is None:
            return known or UserHistory()
        with self._guarded() as connection:
            row = connection.execute("SELECT last, tokens FROM histories WHERE user = ?", (user,)).fetchone()
        if row is None or row[0] < self._oldest:
            return UserHistory()
        history = UserHistory(np.frombuffer(row[1], np.int64).tolist(), row[0])
        self._users[user] = history
        return history

    @property
    def committed(self) -> int | None:
        """The checkpoint that the file belongs to; None without a file, or if nothing was committed to it."""
        if self._file is None:
            return None
        with self._guarded() as connection:
            row = connection.execute("SELECT number FROM commits").fetchone()
        return None if row is None else int(row[0])

    @contextmanager
    def _guarded(self) -> Iterator[sqlite3.Connection]:
        assert self._file is not None
        try:
            yield self._file
        except sqlite3.Error as error:
            raise StorageError(f"histories {self._name}: {error}; check the file and the free disk space") from error


def _open(file: Path) -> sqlite3.Connection:
    failed = f"cannot open the histories {file}"
    try:
        make_folders(file.parent)
        # SQLite does not say why it cannot create a file.
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o644))
    except OSError as error:
        raise StorageError(f"{failed}: {error.strerror or error}; check the path and the free disk space") from error
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(file)
        connection.executescript(_SCHEMA)
        sync(file.parent)  # SQLite ignores it if the name of its log cannot be synced.
    except (sqlite3.Error, OSError) as error:
        if connection is not None:
            connection.close()
        raise StorageError(f"{failed}: {error}; check the file and the free disk space") from error
    return connection


def _packed(tokens: list[int]) -> bytes:
    return np.array(tokens, np.int64).tobytes()


def _read_journal(journal: Mapping[str, NDArray[Any]]) -> Iterator[tuple[str, UserHistory]]:
    text, name_start, start = journal["names"].tobytes(), 0, 0
    columns = (journal[name].tolist() for name in ("name_ends", "ends", "last"))
    for name_end, end, last in zip(*columns, strict=True):
        user = text[name_start:name_end].decode("utf-8", "surrogatepass")
        yield user, UserHistory(journal["tokens"][start:end].tolist(), last)
        name_start, start = name_end, end
