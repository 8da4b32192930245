"""The user store: histories by user, so that clients can send a user id instead of a history."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from pathdex.data.vocabulary import Id
from pathdex.errors import ConfigError, Problem
from pathdex.storage.atomic import storage_errors
from pathdex.storage.filesystem import make_folders
from pathdex.storage.folder_lock import hold_file

REDIS_SCHEMES = ("redis://", "rediss://", "unix://")


class UserStore(Protocol):
    """Histories by user, oldest first, at most `keep` items each. Users are strings: 12 and "12" are the same user."""

    async def append(self, events: Sequence[tuple[str, Sequence[Id]]]) -> None:
        """Append to the histories; once this returns, the events survive the process.

        Raises `StorageError` on failure; then all of the events are stored, or none.
        """

    async def forget(self, user: str) -> None:
        """Remove a user's history; once this returns, it stays removed. Raises `StorageError` on failure."""

    async def histories(self, users: Sequence[str]) -> list[list[Id]]:
        """The history of each user; empty for an unknown user. Raises `StorageError` on failure."""

    async def close(self) -> None:
        """Finish pending writes and close."""


@contextmanager
def owned_store(place: str | None) -> Iterator[None]:
    """Own the store in a SQLite file; `StorageError` that names the holder if another server does.

    The lock ends with the process. Redis is made to be shared, so a store there has no owner.
    """
    if place is None or "://" in place:
        yield
        return
    file = Path(place).resolve()  # Whatever it is called: a link must not give it a second owner.
    with storage_errors(file):
        make_folders(file.parent)
    remedy = "stop that server, or choose another --user-store"
    handle = hold_file(file.with_name(f"{file.name}.LOCK"), f"the user store {place}", "pathdex serve", remedy)
    try:
        yield
    finally:
        os.close(handle)


def open_store(place: str, keep: int) -> UserStore:
    """Open the store at a Redis URL or in a SQLite file."""
    if place.startswith(REDIS_SCHEMES):
        from pathdex.server.redis_store import RedisStore

        return RedisStore(place, keep)
    if "://" in place:
        rule = f"must be a file or a URL that starts with {' or '.join(REDIS_SCHEMES)}"
        raise ConfigError([Problem(rule, "user_store", place)])
    from pathdex.server.sqlite_store import SqliteStore

    return SqliteStore(Path(place), keep)
