"""Reads any source of interactions into `Interactions`, with the filters of the paper's experiments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pathdex.data.findings import raise_errors
from pathdex.data.formats import Source, SourceTable, open_source, reading
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.rows import Rows, check_rows
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError, Problem
from pathdex.parameters import count_problems


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
) -> Interactions:
    """Read interactions from a file, a folder, a frame, an Arrow table or a sparse matrix.

    Files: CSV, TSV and JSON lines (also `.gz`), Parquet (also a folder of files), RecBole's `.inter`, the MovieLens
    archives or their folders, and the headerless ratings of Amazon 2014. Columns are found by common names
    (`user_id`, `movieId`, `timestamp` ...) unless named. Without a time column, the row order is used. A sparse matrix
    has users as rows and items as columns, and no order: `ordered` is False.

    Filters apply once each, in this order: rows with at least `min_rating`; items with at least
    `min_item_interactions` such rows; users with at least `min_interactions` remaining rows. Rows are sorted by time,
    ties in source order. Duplicates are kept; `notes` counts them and what was dropped. The catalogue is the items of
    the remaining users. Ratings are read only if `min_rating` or `rating` is given.
    """
    filters = RowFilters(min_rating, min_interactions, min_item_interactions)
    table, rows = filters.open(source, format, user=user, item=item, time=time, rating=rating)
    raise_errors(rows.findings)
    data = build(rows, filters, name=table.name, ordered=table.ordered)
    if data.num_interactions == 0:
        raise DataError(filters.all_dropped(table.name, rows.count))
    return data


@dataclass(frozen=True)
class RowFilters:
    """Which rows of a source are kept."""

    min_rating: float | None = None
    min_interactions: int | None = None
    min_item_interactions: int | None = None

    def __post_init__(self) -> None:
        problems, remedy = [], "leave it out to keep all"
        least: object = self.min_rating
        if least is not None and (isinstance(least, bool) or not isinstance(least, int | float)):
            problems.append(Problem("must be a number", "min_rating", least, remedy))
        for name in ("min_interactions", "min_item_interactions"):
            if (value := getattr(self, name)) is not None:
                problems += count_problems(name, value, remedy=remedy)
        if problems:
            raise DataError(*problems)

    def open(self, source: Source, format: str | None, **named: str | None) -> tuple[SourceTable, Rows]:
        """Open a source and check its rows. The column of ratings is read only if it is named or needed."""
        if named["rating"] is None and self.min_rating is None:
            del named["rating"]
        table = open_source(source, format)
        return table, check_rows(table, named)

    def all_dropped(self, name: str, count: int) -> Problem:
        """The problem that no row of a source is kept."""
        values = ", ".join(f"{key}={value}" for key, value in vars(self).items())
        return Problem(f"none of the {count:,} rows of {name} is kept with {values}", remedy="lower them")


def build(rows: Rows, filters: RowFilters, *, name: str, ordered: bool) -> Interactions:
    """Filter, encode and sort checked rows. The result may be empty."""
    frame = rows.frame
    if filters.min_rating is not None:
        frame = frame.filter(pl.col("rating") >= filters.min_rating)
    with reading(name):
        kept = frame.select(pl.exclude("rating")).collect(engine="streaming")
    notes = {"rows": rows.count, "dropped_low_rating": rows.count - kept.height}
    times = kept["time"] if "time" in rows.columns else None
    item_codes, items = Vocabulary.encode(kept["item"])
    user_codes, users = Vocabulary.encode(kept["user"])
    del kept

    stay = _frequent(item_codes, len(items), filters.min_item_interactions)
    notes["dropped_rare_items"] = len(items) - int(stay.sum())
    keep = stay[item_codes]
    stay = _frequent(user_codes[keep], len(users), filters.min_interactions)
    notes["dropped_short_users"] = len(users) - int(stay.sum())
    keep &= stay[user_codes]

    user_codes, users = _compact(user_codes[keep], users)
    item_codes, items = _compact(item_codes[keep], items)
    table = pl.DataFrame({"user": user_codes, "item": item_codes})
    if times is not None:
        table = table.with_columns(times.filter(pl.Series(keep)).alias("time"))
    moment = [name for name in table.columns if name != "item"]
    table = table.sort(moment, maintain_order=True)
    notes["duplicate_rows"] = _duplicates(table, moment, len(items))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(user_codes, minlength=len(users)))]).astype(np.int64)
    return Interactions(
        Ragged(table["item"].to_numpy(), offsets),
        users,
        items,
        None if times is None else table["time"].cast(pl.Float64).to_numpy(),
        ordered,
        notes,
    )


def _duplicates(table: pl.DataFrame, moment: list[str], num_items: int) -> int:
    """How many rows repeat an earlier one: same user, item and, where known, time. `moment` columns are sorted."""
    if table.is_empty():
        return 0
    changes = table.select(pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in moment).fill_null(True))
    keys = np.cumsum(changes.to_series().to_numpy(), dtype=np.int64) * num_items + table["item"].to_numpy()
    keys.sort()
    return int((keys[1:] == keys[:-1]).sum())


def _frequent(codes: NDArray[np.int32], size: int, least: int | None) -> NDArray[np.bool_]:
    return np.asarray(np.bincount(codes, minlength=size) >= (least or 1))


def _compact(codes: NDArray[np.int32], vocabulary: Vocabulary) -> tuple[NDArray[np.int32], Vocabulary]:
    """Codes renumbered without gaps, in the same order."""
    present = np.bincount(codes, minlength=len(vocabulary)) > 0
    if present.all():
        return codes, vocabulary
    return (np.cumsum(present, dtype=np.int32) - 1)[codes], vocabulary.take(np.flatnonzero(present))
