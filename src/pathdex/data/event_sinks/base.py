"""What every sink of events can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pathdex.data.events import StreamRecord

CHUNK = 1000
"""Records per round trip."""


class EventSink(Protocol):
    """The end of a stream where records are appended. Used by one thread at a time.

    It connects with the first `append`, and again after a failure. An append that failed is never repeated by itself:
    it could be stored twice.
    """

    name: str
    """The place, as it may be shown: without a password."""

    def append(self, records: Sequence[StreamRecord]) -> None:
        """Append in order. Once this returns, the broker or the disk has them.

        Raises `StorageError` or `ServerError`; then some of the records may be stored, and the others are not.
        """
        ...

    def close(self) -> None:
        """Release files and connections. A later `append` opens them again."""
        ...
