"""Reads any source of interactions into `Interactions`, with the filters of the paper's experiments."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeGuard

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pathdex.data.findings import raise_errors
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.reading import Reading
from pathdex.data.remembered import read_like
from pathdex.data.rows import Rows
from pathdex.data.serialization import load_interactions
from pathdex.data.source_table import Source, reading
from pathdex.data.values import TIME_UNITS
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError, DataWarning, Problem
from pathdex.storage.array_folder import MANIFEST


def read(
    source: Source,
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
    like: Reading | None = None,
) -> Interactions:
    """Read interactions from a file, a folder, a frame, an Arrow table or a sparse matrix.

    Files: CSV, TSV and JSON lines (also `.gz`), Parquet (also a folder of files), RecBole's `.inter`, the MovieLens
    archives or their folders, and the headerless ratings of Amazon 2014. Columns are found by common names
    (`user_id`, `movieId`, `timestamp` ...) unless named. Without a time column, the row order is used. A sparse matrix
    has users as rows and items as columns, and no order: `ordered` is False.

    A folder that `prepare` wrote is mapped from disk as it is, without any option.

    Filters apply once each, in this order: rows with at least `min_rating`; items with at least
    `min_item_interactions` such rows; users with at least `min_interactions` remaining rows. Rows are sorted by time,
    ties in source order. Duplicates are kept; `notes` counts them and what was dropped. The catalogue is the items of
    the remaining users. Ratings are read only if `min_rating` or `rating` is given.

    `separator`, `encoding` and `header=False` (columns are then named `1`, `2` ...) are for text files that do not
    show them. `drop_missing` drops rows without an id, a time or a rating that is read. `time_unit` is the
    unit of times that are numbers: `s`, `ms`, `us` or `ns`.
    `like` is the `reading` of earlier data or of a model; its options apply where none is given, except filters by
    count.
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
    if is_prepared(source):
        return read_prepared(source, options)
    return read_as(source, options if like is None else read_like(like, source, options).reading)


def is_prepared(source: Source) -> TypeGuard[str | os.PathLike[str]]:
    """Whether a source is a folder that `prepare` or `save_interactions` wrote."""
    return isinstance(source, str | os.PathLike) and all(
        (Path(source) / name).is_file() for name in (MANIFEST, "values.npy", "offsets.npy")
    )


def read_prepared(source: str | os.PathLike[str], options: Reading) -> Interactions:
    """Prepared interactions, mapped from disk. Options of reading were applied when they were written."""
    if given := options.to_dict():
        rule, remedy = f"{source} is prepared data, which is read as it is", "pass it to `pathdex data prepare`"
        raise DataError(*(Problem(rule, name, value, remedy) for name, value in given.items()))
    return load_interactions(source)


def read_as(source: Source, options: Reading) -> Interactions:
    """`read` with its options in one object."""
    table, rows = options.open(source)
    raise_errors(rows.findings)
    for odd in rows.warnings:
        warnings.warn(odd.message, DataWarning, stacklevel=3)
    data = build(rows, options, name=table.name, ordered=table.ordered)
    if data.num_interactions == 0:
        raise DataError(options.all_dropped(table.name, rows.count))
    return replace(data, reading=options.with_columns(rows.columns))


def build(rows: Rows, filters: Reading, *, name: str, ordered: bool) -> Interactions:
    """Filter, encode and sort checked rows. The result may be empty."""
    frame = rows.frame
    if filters.min_rating is not None:
        frame = frame.filter(pl.col("rating") >= filters.min_rating)
    with reading(name):
        kept = frame.select(pl.exclude("rating")).collect(engine="streaming")
    notes = {"rows": rows.count, **({"dropped_missing": rows.dropped} if rows.dropped else {})}
    notes |= {"dropped_low_rating": rows.count - kept.height}
    times = kept["time"] if "time" in rows.columns else None
    item_codes, items = Vocabulary.encode(kept["item"])
    user_codes, users = Vocabulary.encode(kept["user"])
    del kept

    stay = frequent(item_codes, len(items), filters.min_item_interactions)
    notes["dropped_rare_items"] = len(items) - int(stay.sum())
    keep = stay[item_codes]
    stay = frequent(user_codes[keep], len(users), filters.min_interactions)
    notes["dropped_short_users"] = len(users) - int(stay.sum())
    keep &= stay[user_codes]

    user_codes, users = compact(user_codes[keep], users)
    item_codes, items = compact(item_codes[keep], items)
    kept_times = None if times is None else times.filter(pl.Series(keep))
    found = in_order(user_codes, len(users), item_codes, len(items), kept_times, filters.time_unit)
    notes["duplicate_rows"] = found.duplicates
    return Interactions(found.sequences, users, items, found.times, ordered, notes)


class Ordered(NamedTuple):
    """Rows by user, then by time."""

    sequences: Ragged
    times: NDArray[np.float64] | None
    duplicates: int
    """Rows that repeat an earlier one."""


def in_order(
    user_codes: NDArray[np.int32],
    num_users: int,
    item_codes: NDArray[np.int32],
    num_items: int,
    times: pl.Series | None,
    time_unit: str | None,
) -> Ordered:
    """One sequence per user from the rows of a source, ties in time in the order of the rows."""
    table = pl.DataFrame({"user": user_codes, "item": item_codes})
    if times is not None:
        table = table.with_columns(times.alias("time"))
    moment = [name for name in table.columns if name != "item"]
    table = table.sort(moment, maintain_order=True)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(user_codes, minlength=num_users))]).astype(np.int64)
    seconds = None
    if times is not None:
        seconds = (table["time"].cast(pl.Float64) / TIME_UNITS[time_unit or "s"]).to_numpy()
    return Ordered(Ragged(table["item"].to_numpy(), offsets), seconds, _duplicates(table, moment, num_items))


def _duplicates(table: pl.DataFrame, moment: list[str], num_items: int) -> int:
    """How many rows repeat an earlier one: same user, item and, where known, time. `moment` columns are sorted."""
    if table.is_empty():
        return 0
    changes = table.select(pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in moment).fill_null(True))
    keys = np.cumsum(changes.to_series().to_numpy(), dtype=np.int64) * num_items + table["item"].to_numpy()
    keys.sort()
    return int((keys[1:] == keys[:-1]).sum())


def frequent(codes: NDArray[np.int32], size: int, least: int | None) -> NDArray[np.bool_]:
    """Which of `size` codes occur at least `least` times."""
    return np.asarray(np.bincount(codes, minlength=size) >= (least or 1))


def compact(codes: NDArray[np.int32], vocabulary: Vocabulary) -> tuple[NDArray[np.int32], Vocabulary]:
    """Codes renumbered without gaps, in the same order."""
    present = np.bincount(codes, minlength=len(vocabulary)) > 0
    if present.all():
        return codes, vocabulary
    return (np.cumsum(present, dtype=np.int32) - 1)[codes], vocabulary.take(np.flatnonzero(present))
