"""Prepares sources larger than memory: what `read` gives, as a folder that is mapped from disk.

An external sort. The rows are read in batches and written to one file per range of users; a range fits in memory, is
sorted there, and becomes a shard. Ranges follow the order of the ids, so the shards only need to be joined.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from pathdex.data.findings import raise_errors
from pathdex.data.ray_runner import Runner, runner
from pathdex.data.reading import Reading
from pathdex.data.remote_files import is_url
from pathdex.data.rows import Rows
from pathdex.data.serialization import INTERACTIONS_FORMAT, AnyPath
from pathdex.data.sorted_shards import Shard, ShardOptions, join_shards, sorted_shards
from pathdex.data.source_table import Source, SourceTable
from pathdex.data.user_ranges import (
    FAN_OUT,
    SAMPLED_USERS,
    Division,
    Range,
    Report,
    batches_of,
    coded_items,
    divide,
    item_counts,
    sampled_users,
    splitters_of,
)
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError, DataWarning, Problem
from pathdex.parameters import count_problems
from pathdex.progress import Progress
from pathdex.storage.array_folder import write_folder

SHARD_ROWS = 2_000_000
"""Interactions per shard by default. Sorting took 80 bytes for each, with ids of 39 bytes."""
WORK = "work"
"""The folder of intermediate files within the folder that is being written."""


def prepare(
    source: Source,
    path: AnyPath,
    *,
    user: str | None = None,
    item: str | None = None,
    time: str | None = None,
    rating: str | None = None,
    min_rating: float | None = None,
    min_interactions: int | None = None,
    min_item_interactions: int | None = None,
    format: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    time_unit: str | None = None,
    drop_missing: bool | None = None,
    shard_rows: int = SHARD_ROWS,
    ray: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write the interactions of a source, also of one larger than memory, to a new folder at `path`.

    `read(path)` maps the folder and gives what `read` gives for the source with the same options. A shard has about
    `shard_rows` interactions; fewer take less memory. `ray` is the address of a Ray cluster that does the work, or
    `"local"`; all its nodes must see the files of the source and of `path` under the same names. Intermediate files
    need about as much space beside `path` as the result, and files that are compressed are decompressed there.
    `progress` is called with the interactions that were divided and sorted, and twice their number.
    """
    options = Reading(
        user=user,
        item=item,
        time=time,
        rating=rating,
        min_rating=min_rating,
        min_interactions=min_interactions,
        min_item_interactions=min_item_interactions,
        format=format,
        separator=separator,
        encoding=encoding,
        header=header,
        time_unit=time_unit,
        drop_missing=drop_missing,
    )
    if problems := count_problems("shard_rows", shard_rows, remedy=f"the default is {SHARD_ROWS:,}"):
        raise DataError(*problems)
    target, facts = Path(path).absolute(), dict[str, Any]()
    if _is_inside(source, target):
        rule = "is the source, or in it or around it"
        raise DataError(Problem(rule, "path", str(path), "write the prepared data beside its source"))
    report = progress or (lambda done, total: None)
    with runner(ray) as run:

        def write(folder: Path) -> None:
            work = folder / WORK
            work.mkdir()
            facts.update(_prepare(source, folder, work, options, shard_rows, run, report))
            shutil.rmtree(work)

        return write_folder(target, INTERACTIONS_FORMAT, facts, write, overwrite=overwrite)


def _prepare(
    source: Source, folder: Path, work: Path, options: Reading, shard_rows: int, run: Runner, progress: Progress
) -> dict[str, Any]:
    """Write the arrays to `folder`; returns the facts for the manifest."""
    table, rows = options.open(source, scratch=work)
    raise_errors(rows.findings)
    for odd in rows.warnings:
        warnings.warn(odd.message, DataWarning, stacklevel=4)
    parts = _kept(rows, options)
    counts = pl.concat(run(partial(_count, name=table.name), parts)).group_by("item").agg(pl.col("count").sum())
    total = int(counts["count"].sum())
    notes = {"rows": rows.count, **({"dropped_missing": rows.dropped} if rows.dropped else {})}
    notes["dropped_low_rating"] = rows.count - total
    if total == 0:
        raise DataError(options.all_dropped(table.name, rows.count))
    known = counts.filter(pl.col("count") >= (options.min_item_interactions or 1)).sort("item")
    notes["dropped_rare_items"] = counts.height - known.height
    items = known.select("item", code=pl.int_range(pl.len(), dtype=pl.Int32))
    counter = _Counter(progress, 2 * total)

    ranges = _divided(table, parts, items, total, shard_rows, work, run, counter)
    form = ShardOptions(shard_rows, len(items), options.min_interactions, options.time_unit)
    tasks = [(found, work / f"shards-{number}") for number, found in enumerate(ranges)]
    shards = [one for found in run(partial(_sort, options=form), tasks, counter) for one in found]
    notes["dropped_short_users"] = sum(shard.all_users - shard.users for shard in shards)
    notes["duplicate_rows"] = sum(shard.duplicates for shard in shards)
    if not any(shard.rows for shard in shards):
        raise DataError(options.all_dropped(table.name, rows.count))
    join_shards(shards, Vocabulary.from_column(items["item"]), folder)
    reading = options.with_columns(rows.columns).to_dict()
    return {"ordered": table.ordered, "notes": notes, "reading": reading}


def _is_inside(source: Source, target: Path) -> bool:
    """Whether writing to `target` would write into the source, or replace it."""
    if not isinstance(source, str | os.PathLike) or is_url(source):
        return False
    place = Path(source).absolute()
    return target == place or place in target.parents or target in place.parents


def _kept(rows: Rows, options: Reading) -> list[pl.LazyFrame]:
    """The parts of the source with the rows that have a sufficient rating."""
    parts = list(rows.parts)
    if options.min_rating is not None:
        parts = [part.filter(pl.col("rating") >= options.min_rating) for part in parts]
    return [part.select(pl.exclude("rating")) for part in parts]


def _divided(
    table: SourceTable,
    parts: Sequence[pl.LazyFrame],
    items: pl.DataFrame,
    total: int,
    shard_rows: int,
    work: Path,
    run: Runner,
    report: Report,
) -> list[Range]:
    """The rows in ranges of users, each with files of all parts in their order."""
    number, name = min(FAN_OUT, -(-total // shard_rows)), table.name
    sample = parts[0].select("user").head(0).collect()["user"]
    if number > 1:
        every = max(1, total // SAMPLED_USERS)
        sample = pl.concat(run(partial(_sample, every=every, name=name), parts))
    splitters = splitters_of(sample, number)
    divisions = [Division(splitters, work / f"part-{place}", name) for place in range(len(parts))]
    tasks = list(zip(parts, divisions, strict=True))
    found = list(run(partial(_divide, items=items), tasks, report))
    return [
        Range(tuple(file for one in same for file in one.files), sum(one.rows for one in same))
        for same in zip(*found, strict=True)
        if any(one.rows for one in same)
    ]


def _count(part: pl.LazyFrame, report: Report, *, name: str) -> pl.DataFrame:
    return item_counts(part, name)


def _sample(part: pl.LazyFrame, report: Report, *, every: int, name: str) -> pl.Series:
    return sampled_users(part, every, name)


def _divide(task: tuple[pl.LazyFrame, Division], report: Report, *, items: pl.DataFrame) -> list[Range]:
    part, division = task
    return divide(batches_of(coded_items(part, items), division.name), division, report)


def _sort(task: tuple[Range, Path], report: Report, *, options: ShardOptions) -> list[Shard]:
    return sorted_shards(*task, options, report)


class _Counter:
    """Adds up the reports of rows."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def __call__(self, rows: int) -> None:
        self.done += rows
        self.progress(self.done, self.total)
