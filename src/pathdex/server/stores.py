"""The user store: what each user took, so that a client can send a user id in the place of a history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pathdex.data.vocabulary import Id
from pathdex.errors import ConfigError

REDIS_SCHEMES = ("redis://", "rediss://", "unix://")


class UserStore(Protocol):
    """Histories by user, oldest first, of at most `keep` items each. Users are text: 12 and "12" are the same one."""

    async def append(self, events: Sequence[tuple[str, Sequence[Id]]]) -> None:
        """Add to the histories; when this returns, the events outlive the process.

        Raises `StorageError` where the store fails; then none or all of the events are stored.
        """

    async def histories(self, users: Sequence[str]) -> list[list[Id]]:
        """The history of each user; empty for one who is not known. Raises `StorageError` where the store fails."""

    async def close(self) -> None:
        """Finish what was begun."""


def open_store(place: str, keep: int) -> UserStore:
    """The store at a Redis address, or in a SQLite file."""
    if place.startswith(REDIS_SCHEMES):
        from pathdex.server.redis_store import RedisStore

        return RedisStore(place, keep)
    if "://" in place:
        raise ConfigError(
            [f"user_store={place!r}: must be a file or an address that begins with {' or '.join(REDIS_SCHEMES)}"]
        )
    from pathdex.server.sqlite_store import SqliteStore

    return SqliteStore(Path(place), keep)
