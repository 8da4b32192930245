"""Events from Parquet: one file, or the files of a folder in the order of their names.

Rows are read in small batches, so memory does not depend on the size of a file. A file does not change once it is
there; with `follow`, files that appear later and sort after the current one are read as well.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pathdex.data.columns import find_columns, guess_column
from pathdex.data.event_sources.base import NEW_STATE, EventDecoder, check_position, log, position_value
from pathdex.data.event_sources.text_file import edges_digest, open_for_reading
from pathdex.data.events import EventBatch, Position
from pathdex.data.findings import raise_errors
from pathdex.data.source_table import reading
from pathdex.errors import DataError, Problem

POLL_SECONDS = 0.2
ROWS = 1024
"""Rows decoded at a time."""
_MAGIC = b"PAR1"


class ParquetSource:
    """A Parquet file, or a folder of them."""

    def __init__(self, path: Path, decoder: EventDecoder, *, follow: bool = False) -> None:
        self.path, self.follow = path, follow
        self._decoder = decoder
        self._seen: set[str] = set()
        self._rows: Iterator[dict[str, Any]] = iter(())
        if path.is_dir() and not self._names() and not follow:
            rule = f"{path} holds no Parquet files"
            raise DataError(Problem(rule, remedy="check the path, or wait for files with follow"))
        if not path.is_dir():
            os.close(open_for_reading(path))
        self._begin()

    def seek(self, position: Position | None) -> None:
        self._begin()
        if position is None:
            return
        check_position(position, "parquet")
        row = position_value(position, "row", int)
        if position.get("file") is None:
            return
        name = position_value(position, "file", str)
        if name not in self._names():
            rule = f"{self.path} no longer holds {name}, in which row {row:,} was the last one read"
            raise DataError(Problem(rule, remedy=f"restore the file; {NEW_STATE}"))
        if self._digest_of(name) != position.get("digest"):
            rule = f"{self._file(name)} is not the file that was read: its content has changed"
            raise DataError(Problem(rule, remedy=f"restore the file; {NEW_STATE}"))
        self._open(name, row)
        self._seen = set(self._names())
        # Positions of earlier releases have no count.
        late = self._position["earlier"] - position.get("earlier", self._position["earlier"])
        if late > 0:
            what = "1 new file sorts" if late == 1 else f"{late:,} new files sort"
            log.warning("%s: %s before %s, which was read already: not read", self.path, what, name)

    def read(self, max_events: int, timeout: float) -> EventBatch | None:
        deadline = time.monotonic() + timeout
        while True:
            rows = list(islice(self._rows, max_events))
            if rows:
                return self._batch(rows)
            if self._open_next():
                continue
            if not self.follow:
                return None
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return EventBatch([], self._position, drained=True)
            time.sleep(min(POLL_SECONDS, remaining))

    def acknowledge(self, position: Position) -> None:
        """Nothing to do: files forget nothing."""

    def lag(self) -> int | None:
        """The number of rows in the rest of this file and in the complete files after it."""
        return self._total - self._row + sum(self._count(name) for name in self._names() if name > (self._name or ""))

    def close(self) -> None:
        self._rows = iter(())
        self._decoder.close()

    def _begin(self) -> None:
        self._name: str | None = None
        self._row = self._total = 0
        self._rows = iter(())
        self._position: Position = {"source": "parquet", "file": None, "row": 0}

    def _file(self, name: str) -> Path:
        return self.path / name if self.path.is_dir() else self.path

    def _names(self) -> list[str]:
        if not self.path.is_dir():
            return [self.path.name]
        names = (name for name in os.listdir(self.path) if not name.startswith((".", "_")))
        return sorted(name for name in names if name.endswith((".parquet", ".pq")))

    def _open_next(self) -> bool:
        """Begin the next file. False if there is none, or if it is still being written."""
        names = self._names()
        self._warn_of_late_files(names)
        name = next((one for one in names if self._name is None or one > self._name), None)
        if name is None or (self.follow and not _is_complete(self._file(name))):
            return False
        self._open(name, 0)
        return True

    def _open(self, name: str, row: int) -> None:
        import pyarrow.parquet as pq

        path = self._file(name)
        with reading(str(path)):
            file = pq.ParquetFile(path)
        columns = file.schema_arrow.names
        named = dict(self._decoder.parser.named)
        if named["weight"] is None and guess_column("weight", columns) is None:
            del named["weight"]
        found, problems = find_columns(columns, named, str(path))
        raise_errors(problems)
        self._name, self._row, self._total = name, row, file.metadata.num_rows
        self._rows = _rows_from(file, row, list(found.values()), str(path))
        earlier = sum(one < name for one in self._names())
        self._position = {
            "source": "parquet",
            "file": name,
            "row": row,
            "digest": self._digest_of(name),
            "earlier": earlier,
        }

    def _batch(self, rows: list[dict[str, Any]]) -> EventBatch:
        assert self._name is not None
        placed = ((f"{self._name}:{self._row + place}", row) for place, row in enumerate(rows))
        events, malformed = self._decoder.decode(placed, self._decoder.parser.parse)
        self._row += len(rows)
        self._position = {**self._position, "row": self._row}
        return EventBatch(events, self._position, malformed)

    def _digest_of(self, name: str) -> str:
        """Of the two ends of the file: the end is the footer, which describes every column."""
        handle = open_for_reading(self._file(name))
        try:
            return edges_digest(handle, os.fstat(handle).st_size)
        finally:
            os.close(handle)

    def _count(self, name: str) -> int:
        import pyarrow.parquet as pq

        try:
            return int(pq.read_metadata(self._file(name)).num_rows)
        except (OSError, ValueError):  # Still being written.
            return 0

    def _warn_of_late_files(self, names: list[str]) -> None:
        if self._name is None:
            self._seen = set(names)
            return
        late = {name for name in names if name < self._name} - self._seen
        self._seen.update(names)
        for name in sorted(late):
            log.warning("%s sorts before %s, which was read already: it is not read", self._file(name), self._name)


def _is_complete(path: Path) -> bool:
    """Whether the file ends as a Parquet file does; the footer is written last."""
    try:
        with path.open("rb") as file:
            file.seek(-len(_MAGIC), os.SEEK_END)
            return file.read() == _MAGIC
    except OSError:
        return False


def _rows_from(file: Any, first: int, columns: list[str], name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file from row `first` on; row groups before it are not read."""
    with reading(name), file:
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if first >= rows:
                first -= rows
                continue
            for batch in file.iter_batches(ROWS, row_groups=[group], columns=columns):
                skipped = min(first, batch.num_rows)
                first -= skipped
                yield from _with_plain_times(batch.slice(skipped)).to_pylist()


def _with_plain_times(batch: Any) -> Any:
    """Timestamps in microseconds, since Python's datetime has no nanoseconds."""
    import pyarrow as pa

    for place, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            micro = batch.column(place).cast(pa.timestamp("us", field.type.tz), safe=False)
            batch = batch.set_column(place, field.name, micro)
    return batch
