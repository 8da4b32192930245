"""Checks a source before training and lists all findings."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pathdex.data.columns import guess_column
from pathdex.data.findings import Finding, finding
from pathdex.data.interactions import Interactions
from pathdex.data.readers import build
from pathdex.data.reading import Reading
from pathdex.data.rows import Rows
from pathdex.data.source_table import Source, SourceTable
from pathdex.data.splits import too_few_users, users_to_hold_out
from pathdex.errors import DataError

SHOWN_IDS = 3


def validate(
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
    valid_users: int = 0,
    test_users: int = 0,
) -> list[Finding]:
    """All findings about a source, errors first. Takes the arguments of `read` and of `split_users`.

    Errors are what `read` and `split_users` would raise; warnings and infos are what they accept silently.
    """
    filters = Reading(
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
    try:
        table, rows = filters.open(source)
        if rows.errors:
            return [*rows.errors, *rows.warnings]
        data = build(rows, filters, name=table.name, ordered=table.ordered)
    except DataError as failure:
        return [Finding("error", "D101", problem) for problem in failure.problems]
    if data.num_interactions == 0:
        return [Finding("error", "D301", filters.all_dropped(table.name, rows.count))]
    shortage = too_few_users(data.num_users, len(users_to_hold_out(data)), valid_users, test_users)
    return [
        *([Finding("error", "D302", shortage)] if shortage else []),
        *rows.warnings,
        *_about_rows(data),
        *_about_ids(rows),
        *_about_time(data, rows, table),
        *_about_rating(table, rows),
        finding("info", "D415", f"columns: {_roles(rows)}"),
        finding("info", "D410", f"{table.name} gives {data!r}"),
    ]


def _roles(rows: Rows) -> str:
    return ", ".join(f"{role} = {name!r}" for role, name in rows.columns.items())


def _about_rows(data: Interactions) -> Iterator[Finding]:
    if duplicates := data.notes["duplicate_rows"]:
        what = "user, item and time" if data.times is not None else "user and item"
        yield finding("warning", "D401", f"{duplicates:,} rows repeat an earlier {what}; they are kept")
    if short := int((data.sequences.lengths == 1).sum()):
        rule = (
            f"{short:,} of {data.num_users:,} users have one interaction: nothing can be predicted for them, and they "
            "are not held out"
        )
        yield finding("warning", "D403", rule, remedy="min_interactions=2 drops them")


def _about_ids(rows: Rows) -> Iterator[Finding]:
    schema = rows.frame.collect_schema()
    for role in ("user", "item"):
        if schema[role] != pl.String:
            continue
        ids = rows.frame.select(pl.col(role).unique().sort().alias("id")).collect(engine="streaming")
        ids = ids.with_columns(stripped=pl.col("id").str.strip_chars())
        # 012, 12 and 12.0 may be meant as one id.
        ids = ids.with_columns(number=pl.col("stripped").str.replace(r"^0*([0-9]+)(?:\.0*)?$", "$1"))
        same_text = pl.len().over("stripped") > 1
        same_number = (pl.len().over("number") > 1) & ~same_text
        rules = ("D404", same_text, "white space"), ("D405", same_number, "how a number is written")
        for code, confusable, how in rules:
            found = ids.filter(confusable)["id"]
            if len(found):
                shown = ", ".join(repr(one) for one in found.head(SHOWN_IDS))
                rule = (
                    f"column {rows.columns[role]!r}: {len(found):,} {role} ids differ from another only by {how} "
                    f"({shown}{', ...' if len(found) > SHOWN_IDS else ''}); they are read as different {role}s"
                )
                yield finding("warning", code, rule)


def _about_time(data: Interactions, rows: Rows, table: SourceTable) -> Iterator[Finding]:
    if not data.ordered:
        rule = (
            f"{table.name} has no order: splits by time and by last items are refused, and a split by users cuts "
            "histories at random"
        )
        yield finding("warning", "D407", rule)
    elif data.times is None:
        yield finding("info", "D406", f"{table.name} has no time column: the row order is used")
    elif float(data.times.min()) == float(data.times.max()):
        yield finding("warning", "D408", f"all rows of {table.name} have the same time: the row order is used")
    else:
        earlier = pl.col("time") < pl.col("time").shift().over("user")
        if late := int(rows.frame.select(earlier.sum()).collect().item()):
            rule = f"{late:,} rows are earlier than the previous row of the same user; read sorts them"
            yield finding("info", "D402", rule)


def _about_rating(table: SourceTable, rows: Rows) -> Iterator[Finding]:
    column = guess_column("rating", table.frame.collect_schema().names())
    if "rating" not in rows.columns and column is not None:
        rule = f"column {column!r} looks like ratings and is not used"
        yield finding("info", "D409", rule, remedy="min_rating= keeps only rows with at least that rating")
