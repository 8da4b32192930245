"""Bytes in, complete lines out, in bounded memory."""

from __future__ import annotations

from typing import NamedTuple

from pathdex.data.event_sources.dead_letters import RAW_LIMIT
from pathdex.data.events import MAX_EVENT_BYTES


class Line(NamedTuple):
    """A line and its place."""

    raw: bytes
    """Without the line break. Only the first bytes of a line over `MAX_EVENT_BYTES`."""
    start: int
    """Bytes before it."""
    end: int
    """Bytes up to its end, line break included."""
    size: int
    """Bytes of the line without the line break, also if `raw` is cut."""


class LineBuffer:
    """Splits chunks into lines. Of a line that is too long only the beginning is kept."""

    def __init__(self, start: int = 0) -> None:
        self.end = start
        """Bytes added so far, counted from the start of the file."""
        self._data = b""
        self._at = 0
        self._head = b""
        self._skipped = 0

    def add(self, chunk: bytes) -> None:
        """Add the next bytes; call it when `next_line` has no line left."""
        rest = self._data[self._at :]
        if len(rest) > MAX_EVENT_BYTES:
            self._head = self._head or rest[:RAW_LIMIT]
            self._skipped += len(rest)
            rest = b""
        self._data, self._at = rest + chunk, 0
        self.end += len(chunk)

    def next_line(self) -> Line | None:
        """The next complete line, or None."""
        stop = self._data.find(b"\n", self._at)
        return None if stop < 0 else self._take(stop, 1)

    def last_line(self) -> Line | None:
        """What follows the last line break, at the end of the source."""
        if self._at == len(self._data) and not self._skipped:
            return None
        return self._take(len(self._data), 0)

    def _take(self, stop: int, line_break: int) -> Line:
        raw, size = self._data[self._at : stop], self._skipped + stop - self._at
        if size > MAX_EVENT_BYTES:
            raw = self._head or raw[:RAW_LIMIT]
        self._at = stop + line_break
        self._head, self._skipped = b"", 0
        end = self.end - (len(self._data) - self._at)
        return Line(raw, end - line_break - size, end, size)
