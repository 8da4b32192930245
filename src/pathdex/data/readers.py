"""From any source of interactions to `Interactions`, by the protocol of the paper's experiments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pathdex.data.findings import raise_errors
from pathdex.data.formats import Source, open_source, reading
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.rows import Rows, check_rows
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError


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
    archives or their folders, and the headerless ratings of Amazon 2014. Columns are found by their common names
    (`user_id`, `movieId`, `timestamp` ...) unless named. Without a time column the order of the rows counts. A sparse
    matrix has users as rows and items as columns; its order means nothing, so `ordered` is False.

    Kept, in this order: rows with at least `min_rating`; items with at least `min_item_interactions` such rows; users
    with at least `min_interactions` rows left. Each is applied once. Rows are sorted by time, ties in the order of the
    source. Nothing is de-duplicated; `notes` counts what was found and dropped. The catalogue is the items of the kept
    users. Ratings are looked at only where `min_rating` or `rating` is given.
    """
    limits = Limits(min_rating, min_interactions, min_item_interactions)
    table = open_source(source, format)
    rows = check_rows(table, asked_columns(user, item, time, rating), use_rating=limits.uses(rating))
    raise_errors(rows.findings)
    data = build(rows, limits, name=table.name, ordered=table.ordered)
    if data.num_interactions == 0:
        raise DataError(nothing_left(table.name, rows.count, limits))
    return data


@dataclass(frozen=True)
class Limits:
    """What is kept of the rows of a source."""

    min_rating: float | None = None
    min_interactions: int | None = None
    min_item_interactions: int | None = None

    def __post_init__(self) -> None:
        problems = []
        least: object = self.min_rating
        if least is not None and (isinstance(least, bool) or not isinstance(least, int | float)):
            problems.append(f"min_rating={least!r}: must be a number; leave it out to keep all")
        for name in ("min_interactions", "min_item_interactions"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                problems.append(f"{name}={value!r}: must be a whole number of at least 1; leave it out to keep all")
        if problems:
            raise DataError(*problems)

    def uses(self, rating: str | None) -> bool:
        """Whether ratings are looked at, given the column that was named for them."""
        return rating is not None or self.min_rating is not None


def asked_columns(user: str | None, item: str | None, time: str | None, rating: str | None) -> dict[str, str | None]:
    return {"user": user, "item": item, "time": time, "rating": rating}


def nothing_left(name: str, count: int, limits: Limits) -> str:
    return (
        f"none of the {count:,} rows of {name} is left with min_rating={limits.min_rating}, "
        f"min_interactions={limits.min_interactions}, min_item_interactions={limits.min_item_interactions}; lower them"
    )


def build(rows: Rows, limits: Limits, *, name: str, ordered: bool) -> Interactions:
    """Filter, number and sort checked rows. May come out empty."""
    frame = rows.frame
    if limits.min_rating is not None:
        frame = frame.filter(pl.col("rating") >= limits.min_rating)
    with reading(name):
        kept = frame.select(pl.exclude("rating")).collect(engine="streaming")
    notes = {"rows": rows.count, "dropped_low_rating": rows.count - kept.height}
    times = kept["time"] if "time" in rows.columns else None
    item_codes, items = Vocabulary.encode(kept["item"])
    user_codes, users = Vocabulary.encode(kept["user"])
    del kept

    stay = _frequent(item_codes, len(items), limits.min_item_interactions)
    notes["dropped_rare_items"] = len(items) - int(stay.sum())
    keep = stay[item_codes]
    stay = _frequent(user_codes[keep], len(users), limits.min_interactions)
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
    """How many rows repeat an earlier one: the same user, item and, where known, time. The rows are sorted by these."""
    if table.is_empty():
        return 0
    changes = table.select(pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in moment).fill_null(True))
    keys = np.cumsum(changes.to_series().to_numpy(), dtype=np.int64) * num_items + table["item"].to_numpy()
    keys.sort()
    return int((keys[1:] == keys[:-1]).sum())


def _frequent(codes: NDArray[np.int32], size: int, least: int | None) -> NDArray[np.bool_]:
    counts = np.bincount(codes, minlength=size)
    frequent: NDArray[np.bool_] = counts >= (1 if least is None else least)
    return frequent


def _compact(codes: NDArray[np.int32], vocabulary: Vocabulary) -> tuple[NDArray[np.int32], Vocabulary]:
    """The codes renumbered without gaps; the order of the ids stays."""
    present = np.bincount(codes, minlength=len(vocabulary)) > 0
    if present.all():
        return codes, vocabulary
    return (np.cumsum(present, dtype=np.int32) - 1)[codes], vocabulary.take(np.flatnonzero(present))
