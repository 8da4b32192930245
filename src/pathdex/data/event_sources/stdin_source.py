"""Events from standard input, one JSON object per line."""

from __future__ import annotations

import os
import select
import sys
import time

from pathdex.data.event_sources.base import NEW_STATE, EventDecoder, check_position, position_value
from pathdex.data.event_sources.line_buffer import Line, LineBuffer
from pathdex.data.event_sources.line_formats import JsonEventLines
from pathdex.data.event_sources.text_file import CHUNK
from pathdex.data.events import EventBatch, Position
from pathdex.errors import DataError, Problem


class StdinSource:
    """A pipe is read once: it cannot go back, so it cannot resume."""

    def __init__(self, decoder: EventDecoder, handle: int | None = None) -> None:
        self._handle = sys.stdin.fileno() if handle is None else handle
        self._decoder, self._format = decoder, JsonEventLines(decoder.parser)
        self._lines = LineBuffer()
        self._count = 0
        self._ended = False

    def seek(self, position: Position | None) -> None:
        if position is None:
            return
        check_position(position, "stdin")
        count = position_value(position, "count", int)
        rule = (
            f"stdin cannot be replayed: {count:,} lines of it have been read before, and the rest of that pipe is gone"
        )
        raise DataError(Problem(rule, remedy=f"read from a file or a broker to be able to resume; {NEW_STATE}"))

    def read(self, max_events: int, timeout: float) -> EventBatch | None:
        deadline = time.monotonic() + timeout
        lines: list[Line] = []
        while True:
            while len(lines) < max_events and (line := self._lines.next_line()) is not None:
                lines.append(line)
            if lines:
                return self._batch(lines, drained=len(lines) < max_events)
            if self._ended:
                last = self._lines.last_line()
                return None if last is None else self._batch([last])
            ready, _, _ = select.select([self._handle], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return EventBatch([], self._position, drained=True)
            chunk = os.read(self._handle, CHUNK)
            self._ended = not chunk
            self._lines.add(chunk)

    def acknowledge(self, position: Position) -> None:
        """Nothing to do: a pipe keeps nothing."""

    def lag(self) -> int | None:
        return None

    def close(self) -> None:
        self._decoder.close()

    @property
    def _position(self) -> Position:
        return {"source": "stdin", "count": self._count}

    def _batch(self, lines: list[Line], *, drained: bool = False) -> EventBatch:
        first = self._count + 1
        written = ((f"stdin:{first + place}", line) for place, line in enumerate(lines) if line.raw.strip())
        events, malformed = self._decoder.decode(written, self._format.parse, lambda line: line.raw)
        self._count += len(lines)
        return EventBatch(events, self._position, malformed, drained=drained)
