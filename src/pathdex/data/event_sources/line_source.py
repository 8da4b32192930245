"""Events from a text file, one per line; the file may grow and be rotated.

A position holds the offset after the last line read and a digest of the content before it, so that a file that was
replaced is recognised. With `follow`, a line counts when its line break is there.
"""

from __future__ import annotations

import time
from pathlib import Path

from pathdex.data.event_sources.base import NEW_STATE, EventDecoder, check_position, log, position_value
from pathdex.data.event_sources.line_buffer import Line, LineBuffer
from pathdex.data.event_sources.line_formats import LineFormat
from pathdex.data.event_sources.rotation import inode_of, next_file, rotated_files
from pathdex.data.event_sources.text_file import TextFile, open_text
from pathdex.data.events import EventBatch, Position
from pathdex.errors import ConfigError, DataError, Problem

POLL_SECONDS = 0.05
TYPICAL_LINE = 80
"""Bytes, for the estimate of the lag before the first line was read."""


class LineSource:
    """A file of JSON lines, CSV or TSV. With `follow` it has no end."""

    def __init__(self, path: Path, format: LineFormat, decoder: EventDecoder, *, follow: bool = False) -> None:
        if follow and path.suffix == ".gz":
            raise ConfigError([Problem("a compressed file cannot grow", "follow", follow, "leave it out")])
        self.path, self.follow = path, follow
        self._format, self._decoder = format, decoder
        self._lines_read = self._bytes_read = 0
        self._file: TextFile | None = None
        self._start(open_text(path))

    def seek(self, position: Position | None) -> None:
        if position is None:
            self._start(open_text(self.path))
            return
        check_position(position, self._format.kind)
        offset = position_value(position, "offset", int)
        digest = position_value(position, "digest", str)
        places = rotated_files(self.path)[::-1] if self.follow else [self.path]
        # The first bytes may be the same in several files; the inode tells them apart unless files were copied.
        places.sort(key=lambda place: inode_of(place) != position.get("inode"))
        for place in places:
            file = open_text(place)
            size = file.size()
            if (size is None or size >= offset) and file.digest(offset) == digest:
                self._start(file, offset)
                return
            file.close()
        rule = f"{self.path} is not the file that was read: the content before byte {offset:,} is not the same"
        raise DataError(Problem(rule, remedy=f"restore the file; {NEW_STATE}"))

    def read(self, max_events: int, timeout: float) -> EventBatch | None:
        deadline = time.monotonic() + timeout
        while True:
            if lines := self._read_lines(max_events):
                return self._batch(lines, drained=self.follow and len(lines) < max_events)
            following = next_file(self.path, self._open.inode) if self.follow else None
            if following is not None or not self.follow:
                if self._read_chunk():  # Written just before the file was rotated.
                    continue
                if (last := self._lines.last_line()) is not None:
                    return self._batch([last])
                if following is None:
                    return None
                try:
                    self._start(open_text(following))
                except DataError:
                    if following.exists():  # Otherwise it was renamed meanwhile.
                        raise
                continue
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return EventBatch([], self._position, drained=True)
            time.sleep(min(POLL_SECONDS, remaining))

    def acknowledge(self, position: Position) -> None:
        """Nothing to do: a file forgets nothing."""

    def lag(self) -> int | None:
        """The number of events in the rest of the file, estimated from the length of the lines so far."""
        size = self._open.size()
        if size is None:
            return None
        rest = max(0, size - self._offset)
        return round(rest * self._lines_read / self._bytes_read) if self._lines_read else rest // TYPICAL_LINE

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._decoder.close()

    @property
    def _open(self) -> TextFile:
        assert self._file is not None, "the source is closed"
        return self._file

    def _start(self, file: TextFile, offset: int = 0) -> None:
        """Continue in `file`. A header is read wherever the offset is."""
        if self._file is not None and self._file is not file:
            self._file.close()
        self._file = file
        self._lines = LineBuffer()
        self._move_to(0)
        self._needs_header = self._format.has_header
        if offset:
            if self._needs_header:
                self._read_header()
            self._lines = LineBuffer(offset)
            self._move_to(offset)

    def _move_to(self, offset: int) -> None:
        """Everything before `offset` has been delivered."""
        self._offset, self._digest = offset, self._open.digest(offset)
        self._position: Position = {
            "source": self._format.kind,
            "file": self._open.path.name,
            "inode": self._open.inode,
            "offset": offset,
            "digest": self._digest,
        }

    def _read_lines(self, most: int) -> list[Line]:
        lines: list[Line] = []
        if not self._needs_header or self._read_header():
            while len(lines) < most and (line := self._next_line()) is not None:
                lines.append(line)
        return lines

    def _read_header(self) -> bool:
        line = self._next_line() or (None if self.follow else self._lines.last_line())
        if line is not None:
            self._format.read_header(line, str(self._open.path))
            self._needs_header = False
        return line is not None

    def _next_line(self) -> Line | None:
        while (line := self._lines.next_line()) is None:
            if not self._read_chunk():
                return None
        return line

    def _read_chunk(self) -> bool:
        """Fill the buffer from the file; False at its end."""
        if self._open.digest(self._offset) != self._digest:
            self._truncated()
        chunk = self._open.read_at(self._lines.end)
        self._lines.add(chunk)
        return bool(chunk)

    def _truncated(self) -> None:
        what = f"{self._open.path} was truncated or overwritten while it was read"
        if not self.follow:
            raise DataError(Problem(what, remedy=f"restore the file and run again; {NEW_STATE}"))
        log.warning("%s; reading continues at its start, and lines that were not read before are lost", what)
        self._start(self._open)

    def _batch(self, lines: list[Line], *, drained: bool = False) -> EventBatch:
        name = self._open.path.name
        written = ((f"{name}:{line.start}", line) for line in lines if line.raw.strip())
        events, malformed = self._decoder.decode(written, self._format.parse, lambda line: line.raw)
        self._lines_read += len(lines)
        self._bytes_read += lines[-1].end - lines[0].start
        self._move_to(lines[-1].end)
        return EventBatch(events, self._position, malformed, drained=drained)
