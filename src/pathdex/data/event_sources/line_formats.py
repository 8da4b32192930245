"""One event per line: JSON lines, and CSV or TSV with a header."""

from __future__ import annotations

import codecs
import csv
from typing import Protocol

from pathdex.data.columns import find_columns, guess_column
from pathdex.data.event_sources.line_buffer import Line
from pathdex.data.events import MAX_EVENT_BYTES, EventParser, Malformed, StreamRecord, too_long
from pathdex.data.findings import raise_errors


class LineFormat(Protocol):
    """How the lines of a file are parsed."""

    kind: str
    """The `source` of positions."""
    has_header: bool

    def read_header(self, line: Line, name: str) -> None:
        """Take the first line of the file called `name`. Raises `DataError` if a column is missing."""
        ...

    def parse(self, line: Line) -> StreamRecord | Malformed: ...


class JsonEventLines:
    """A JSON object per line."""

    kind = "jsonl"
    has_header = False

    def __init__(self, parser: EventParser) -> None:
        self._parser = parser

    def read_header(self, line: Line, name: str) -> None:
        raise NotImplementedError

    def parse(self, line: Line) -> StreamRecord | Malformed:
        if line.size > MAX_EVENT_BYTES:
            return too_long(line.size)
        # Some editors begin a file with a byte order mark.
        return self._parser.parse_json(line.raw.removeprefix(codecs.BOM_UTF8) if line.start == 0 else line.raw)


class DelimitedLines:
    """CSV or TSV. A field cannot contain a line break."""

    has_header = True

    def __init__(self, parser: EventParser, delimiter: str) -> None:
        self.kind = "tsv" if delimiter == "\t" else "csv"
        self._parser, self._delimiter = parser, delimiter
        self._columns: list[str] = []

    def read_header(self, line: Line, name: str) -> None:
        columns = self._split(line.raw.decode("utf-8-sig", "replace"))
        named = dict(self._parser.named)
        if named["weight"] is None and guess_column("weight", columns) is None:
            del named["weight"]
        raise_errors(find_columns(columns, named, name)[1])
        self._columns = columns

    def parse(self, line: Line) -> StreamRecord | Malformed:
        if line.size > MAX_EVENT_BYTES:
            return too_long(line.size)
        try:
            fields = self._split(str(line.raw, "utf-8"))
        except UnicodeDecodeError as error:
            return Malformed(f"it is not UTF-8 text (byte {error.start})")
        except csv.Error as error:
            return Malformed(f"it is not {self.kind.upper()} ({error})")
        if len(fields) != len(self._columns):
            return Malformed(f"it has {len(fields)} fields; the header has {len(self._columns)}")
        return self._parser.parse(dict(zip(self._columns, fields, strict=True)), text=True)

    def _split(self, text: str) -> list[str]:
        rows = list(csv.reader([text.rstrip("\r")], delimiter=self._delimiter, strict=True))
        return rows[0] if rows else []
