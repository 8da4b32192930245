"""Rows to files by ranges of users, each small enough to sort in memory: the external part of `prepare`.

Every function works on a part of the rows and takes and returns what can be sent to another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from pathdex.data.source_table import reading

FAN_OUT = 128
"""Ranges that are written at a time; rows that need more are divided again."""
SAMPLED_USERS = 200_000
"""Rows from whose users the ranges are chosen."""
BATCH_ROWS = 50_000
Report = Callable[[int], None]
"""Called with the number of rows that were read since the last call."""


@dataclass(frozen=True)
class Range:
    """Rows of a range of users, in the order of the source."""

    files: tuple[Path, ...]
    rows: int


@dataclass(frozen=True)
class Division:
    """How rows are divided, and where to."""

    splitters: pl.Series
    """Range i holds the users from `splitters[i - 1]` to before `splitters[i]`."""
    folder: Path
    name: str
    """The source in messages."""


def batches_of(frame: pl.LazyFrame, name: str) -> Iterator[pl.DataFrame]:
    """The rows in batches, in order, as the streaming engine gives them."""
    with reading(name):
        found = iter(frame.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True, engine="streaming"))
    while True:
        with reading(name):
            batch = next(found, None)
        if batch is None:
            return
        yield batch


def item_counts(frame: pl.LazyFrame, name: str) -> pl.DataFrame:
    """Columns `item` and `count`."""
    with reading(name):
        return frame.group_by("item").agg(pl.len().cast(pl.Int64).alias("count")).collect(engine="streaming")


def sampled_users(frame: pl.LazyFrame, every: int, name: str) -> pl.Series:
    """The user of every so many rows."""
    taken, skipped = [frame.select("user").head(0).collect()["user"]], 0
    for batch in batches_of(frame.select("user"), name):
        taken.append(batch["user"].gather_every(every, -skipped % every))
        skipped += batch.height
    return pl.concat(taken)


def splitters_of(sample: pl.Series, ranges: int) -> pl.Series:
    """The users at which `ranges` ranges with about equal numbers of rows begin, without the first."""
    ordered = sample.sort()
    places = [len(ordered) * number // ranges for number in range(1, ranges)]
    return ordered.gather(places).unique().sort()


def coded_items(frame: pl.LazyFrame, items: pl.DataFrame) -> pl.LazyFrame:
    """The rows with the code of every item (`item`, `code`) instead of its id; -1 for items that have none."""
    coded = frame.join(items.lazy().select("item", "code"), on="item", how="left", maintain_order="left")
    others = [name for name in frame.collect_schema().names() if name != "item"]
    return coded.select(*others, pl.col("code").fill_null(-1).cast(pl.Int32).alias("item"))


def divide(batches: Iterator[pl.DataFrame], division: Division, report: Report) -> list[Range]:
    """Write the rows of every range to a file, in the order in which they come. Ranges without rows are left empty."""
    division.folder.mkdir(parents=True)
    writers: dict[int, Any] = {}
    counts = [0] * (len(division.splitters) + 1)
    files = [division.folder / f"{number}.arrow" for number in range(len(counts))]
    try:
        for batch in batches:
            place = division.splitters.search_sorted(batch["user"], side="right")
            groups = batch.with_columns(place.alias("range")).partition_by("range", maintain_order=True, as_dict=True)
            for (number,), group in groups.items():
                rows = as_arrow(group.drop("range"))
                if number not in writers:
                    writers[number] = pa.ipc.new_file(str(files[number]), rows.schema)
                writers[number].write_table(rows)
                counts[number] += group.height
            report(batch.height)
    finally:
        for writer in writers.values():
            writer.close()
    return [Range((file,) if count else (), count) for file, count in zip(files, counts, strict=True)]


def as_arrow(frame: pl.DataFrame) -> pa.Table:
    """The frame as an Arrow table with plain types, which a file can hold."""
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def stored_batches(found: Range) -> Iterator[pl.DataFrame]:
    """The rows of a range, mapped from disk."""
    for file in found.files:
        with pa.memory_map(str(file)) as source:
            reader = pa.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                frame = pl.from_arrow(pa.Table.from_batches([reader.get_batch(number)]))
                assert isinstance(frame, pl.DataFrame)
                yield frame


def small_ranges(found: Range, rows: int, folder: Path, report: Report) -> Iterator[Range]:
    """The range, divided again until each has at most about `rows` rows or a single user. Removes what it divides."""
    if found.rows <= 2 * rows:
        yield found
        return
    every = max(1, found.rows // SAMPLED_USERS)
    users = pl.concat([batch["user"].gather_every(every) for batch in stored_batches(found)])
    splitters = splitters_of(users, min(FAN_OUT, -(-found.rows // rows)))
    parts = divide(stored_batches(found), Division(splitters, folder, ""), report)
    if any(part.rows == found.rows for part in parts):  # One user.
        yield found
        return
    remove_files(found)
    for number, part in enumerate(parts):
        if part.rows:
            yield from small_ranges(part, rows, folder / str(number), report)


def remove_files(found: Range) -> None:
    """Free the space of a range that is not needed any more."""
    for file in found.files:
        file.unlink()
