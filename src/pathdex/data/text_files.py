"""Tables in text files: separators, encodings, headers and compression are detected unless given."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pathdex.data.compression import BLOCK, decompressed_file, is_compressed, new_file, read_decompressed
from pathdex.data.findings import Finding, finding
from pathdex.data.source_table import FileOptions, SourceTable
from pathdex.errors import DataError, Problem

SEPARATORS = (",", ";", "\t", "|")
"""Those that are detected."""
HEAD_BYTES = 2**16
"""Bytes from which the encoding and the separator are detected."""
SHOWN_ROWS = 5
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_LINE = "\x01"
"""A separator that text does not hold, so that a row is one field."""


def open_text(
    source: Path | bytes,
    name: str,
    options: FileOptions,
    *,
    separator: str = ",",
    columns: Sequence[str] | None = None,
    quotes: bool = True,
) -> SourceTable:
    """A text file with every column as text: inferring types would turn the id 007 into 7.

    `separator` is used if the first line holds it, and otherwise the one of `SEPARATORS` that it holds most often.
    Without a header, columns are named `1`, `2` ..., or as in `columns`.
    """
    content = _utf8(source, name, options)
    head = _head(content)
    if not head.strip():
        raise DataError(Problem(f"{name} is empty", remedy="check that it was written completely"))
    first = head.lstrip("\r\n").splitlines()[0]
    chosen = options.separator or _separator(first, separator)
    fields = next(csv.reader([first], delimiter=chosen, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE))
    has_header = columns is None and options.header is not False
    frame = pl.scan_csv(
        io.BytesIO(content) if isinstance(content, bytes) else content,
        separator=chosen,
        infer_schema=False,
        glob=False,
        quote_char='"' if quotes else None,
        has_header=has_header,
        new_columns=None if has_header else _names(columns, len(fields)),
        truncate_ragged_lines=True,
    )
    found = [*(_repeated(fields, name) if has_header else []), *_long_rows(content, chosen, len(fields), name)]
    return SourceTable(frame, name, typed=False, findings=tuple(found))


def _utf8(source: Path | bytes, name: str, options: FileOptions) -> Path | bytes:
    """The file itself if it is plain UTF-8, and otherwise its content as UTF-8, in a file of `options.scratch`."""
    content, encoding, scratch = source, options.encoding, options.scratch
    if isinstance(source, Path) and is_compressed(source):
        content = read_decompressed(source) if scratch is None else decompressed_file(source, scratch)
    start = content[:HEAD_BYTES] if isinstance(content, bytes) else _start(content)
    wanted = encoding or _detected(start)
    if codecs.lookup(wanted).name == "utf-8":
        _check_utf8(start, name)
        return content
    try:
        if scratch is not None and isinstance(content, Path):
            with content.open(encoding=wanted, newline="") as text:
                return new_file(scratch, (part.encode() for part in iter(lambda: text.read(BLOCK), "")))
        raw = content if isinstance(content, bytes) else content.read_bytes()
        return raw.decode(wanted).encode()
    except UnicodeError as error:
        rule = f"{name} is not text in {wanted} ({error})"
        raise DataError(Problem(rule, "encoding", encoding, "name its encoding, such as utf-16 or cp1252")) from error


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _detected(start: bytes) -> str:
    for mark, encoding in _BOMS.items():
        if start.startswith(mark):
            return encoding
    # Half of the bytes of Latin text in UTF-16 are zero.
    if start[1::2].count(0) > len(start) // 4:
        return "utf-16-le"
    return "utf-16-be" if start[::2].count(0) > len(start) // 4 else "utf-8"


def _check_utf8(start: bytes, name: str) -> None:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start, final=False)
    except UnicodeDecodeError as error:
        remedy = "name its encoding with encoding= (--encoding), such as latin-1, cp1252 or utf-16"
        raise DataError(Problem(f"{name} is not UTF-8 text ({error})", remedy=remedy)) from error


def _head(content: Path | bytes) -> str:
    start = content[:HEAD_BYTES] if isinstance(content, bytes) else _start(content)
    return start.decode(errors="replace")


def _separator(first: str, usual: str) -> str:
    if usual in first:
        return usual
    return max(SEPARATORS, key=lambda one: (first.count(one), one == usual))


def _names(columns: Sequence[str] | None, count: int) -> list[str]:
    named = [] if columns is None else list(columns)[:count]
    return [*named, *(str(place) for place in range(len(named) + 1, count + 1))]


def _repeated(fields: Sequence[str], name: str) -> list[Finding]:
    twice = [field for field, count in Counter(fields).items() if count > 1]
    if not twice:
        return []
    shown = ", ".join(map(repr, twice))
    rule = f"the header of {name} has {shown} more than once; the first column of that name is used"
    return [finding("warning", "D411", rule, remedy="rename the others")]


def _long_rows(content: Path | bytes, separator: str, width: int, name: str) -> list[Finding]:
    """Rows with more fields than the first line. Rows with quotes are not counted: separators in quotes are text."""
    lines = pl.scan_csv(
        io.BytesIO(content) if isinstance(content, bytes) else content,
        separator=_LINE,
        has_header=False,
        new_columns=["line"],
        infer_schema=False,
        glob=False,
        quote_char=None,
        truncate_ragged_lines=True,
    )
    line = pl.col("line")
    extra = (line.str.count_matches(separator, literal=True) >= width) & ~line.str.contains('"', literal=True)
    found = lines.with_row_index("row").filter(extra).select("row")
    rows = found.head(SHOWN_ROWS + 1).collect(engine="streaming")["row"].to_list()
    if not rows:
        return []
    shown = ", ".join(f"{row + 1:,}" for row in rows[:SHOWN_ROWS]) + (", ..." if len(rows) > SHOWN_ROWS else "")
    rule = f"lines of {name} have more than the {width} fields of the first line (lines {shown}); the rest is ignored"
    return [finding("warning", "D412", rule, remedy=f"quote fields that hold {separator!r}")]
