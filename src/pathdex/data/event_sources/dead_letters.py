"""Malformed events in a JSON lines file, with the reason. Writing never stops the stream.

Each line has `position` (where the event is in its source), `reason`, `raw` (cut if it is long) and `seen` (when, UTC).
After a crash the events since the last checkpoint are read again; a letter with a position and a content that are
already among the last ones of the file is not written again.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pathdex.errors import StorageError
from pathdex.storage.filesystem import make_folders, sync, write_all

MAX_BYTES = 16 << 20
"""Size at which the file is renamed to `NAME.1`, which replaces an older one: at most twice this is used."""
RAW_LIMIT = 4096
"""Characters of a malformed event that are kept."""
REMEMBERED = 10_000
"""Letters that are recognised when their events are read again."""
_TAIL = 8 << 20

log = logging.getLogger("pathdex.stream")


class DeadLetter(NamedTuple):
    """A malformed event."""

    position: str
    reason: str
    raw: Any


class DeadLetters:
    """An append-only file of malformed events, synced to disk once per batch."""

    def __init__(self, path: str | Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.path, self.max_bytes = Path(path), max_bytes
        self.written = 0
        """Letters written by this object."""
        self.dropped = 0
        """Letters that could not be written, such as on a full disk."""
        self._keys: set[int] = set()
        self._order: deque[int] = deque()
        try:
            make_folders(self.path.parent)
            self._handle = self._open()
            self._size = self._read_tail()
        except OSError as error:
            reason = error.strerror or error
            raise StorageError(f"cannot write dead letters to {self.path}: {reason}; choose another path") from error

    def write(self, letters: Iterable[DeadLetter]) -> None:
        """Append letters and sync. A failure is logged and counted."""
        seen = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        lines = []
        for letter in letters:
            raw = _readable(letter.raw)
            if self._remember(letter.position, raw):
                fields = {"position": letter.position, "reason": letter.reason, "raw": raw, "seen": seen}
                lines.append(json.dumps(fields).encode() + b"\n")
        if not lines:
            return
        try:
            self._append(b"".join(lines))
        except OSError as error:
            if not self.dropped:
                log.warning("dead letters cannot be written to %s: %s; they are counted only", self.path, error)
            self.dropped += len(lines)
            with suppress(OSError):  # A part of a line must not spoil the next one.
                os.ftruncate(self._handle, self._size)
        else:
            if not self.written:
                log.warning("malformed events are written to %s", self.path)
            self.written += len(lines)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _append(self, data: bytes) -> None:
        if self._size and self._size + len(data) > self.max_bytes:
            self._rotate()
        write_all(self._handle, data)
        os.fsync(self._handle)
        self._size += len(data)

    def _open(self) -> int:
        """A handle of the file, whose name is on disk."""
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            sync(self.path.parent)
        except OSError:
            os.close(handle)
            raise
        return handle

    def _is_current(self) -> bool:
        """Whether the path still leads to the open file."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._handle), self.path.stat())
        return False

    def _rotate(self) -> None:
        if self._is_current():  # Otherwise a rotation that failed half-way has renamed it.
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        handle = self._open()
        os.close(self._handle)
        self._handle, self._size = handle, 0

    def _read_tail(self) -> int:
        """Remember the last letters of the file, and cut off a part of a line that a crash left."""
        size = os.fstat(self._handle).st_size
        start = max(0, size - _TAIL)
        tail = os.pread(self._handle, size - start, start)
        whole = tail.rfind(b"\n") + 1
        if whole < len(tail):
            size = start + whole
            os.ftruncate(self._handle, size)
        for line in tail[:whole].splitlines()[-REMEMBERED:]:
            with suppress(ValueError, TypeError, KeyError):
                letter = json.loads(line)
                self._remember(letter["position"], letter["raw"])
        return size

    def _remember(self, position: str, raw: str) -> bool:
        """Whether the letter is new."""
        key = hash((position, raw))
        if key in self._keys:
            return False
        self._keys.add(key)
        self._order.append(key)
        if len(self._order) > REMEMBERED:
            self._keys.discard(self._order.popleft())
        return True


def _readable(raw: Any) -> str:
    if isinstance(raw, bytes):
        return raw[:RAW_LIMIT].decode("utf-8", "backslashreplace")[:RAW_LIMIT]
    text = raw if isinstance(raw, str) else json.dumps(raw, default=_plain)
    return text[:RAW_LIMIT].encode("utf-8", "backslashreplace").decode()[:RAW_LIMIT]


def _plain(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
