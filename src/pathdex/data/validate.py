"""Everything that can be said against a source before any training, in one list."""

from __future__ import annotations

import polars as pl

from pathdex.data.columns import find_columns
from pathdex.data.findings import Finding, error
from pathdex.data.formats import Source, Table, open_source
from pathdex.data.interactions import Interactions
from pathdex.data.readers import Limits, asked_columns, build, nothing_left
from pathdex.data.rows import Rows, check_rows
from pathdex.data.splits import holdable_users, shortage
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
    valid_users: int = 0,
    test_users: int = 0,
) -> list[Finding]:
    """All findings about a source, errors first; the arguments are those of `read` and of `split_users`.

    The errors are those that `read` and `split_users` would raise. Warnings and infos name what they accept in silence.
    """
    limits = Limits(min_rating, min_interactions, min_item_interactions)
    try:
        table = open_source(source, format)
        rows = check_rows(table, asked_columns(user, item, time, rating), use_rating=limits.uses(rating))
        if rows.findings:
            return list(rows.findings)
        data = build(rows, limits, name=table.name, ordered=table.ordered)
    except DataError as failure:
        return [error("D101", str(problem)) for problem in failure.problems]
    if data.num_interactions == 0:
        return [error("D301", nothing_left(table.name, rows.count, limits))]
    problem = shortage(data.num_users, len(holdable_users(data)), valid_users, test_users)
    return [
        *([error("D302", problem)] if problem else []),
        *_about_rows(data),
        *_about_ids(rows),
        *_about_time(data, rows, table),
        *_about_rating(table, rows),
        Finding("info", "D410", f"{table.name} gives {data!r}"),
    ]


def _about_rows(data: Interactions) -> list[Finding]:
    findings = []
    duplicates = data.notes["duplicate_rows"]
    if duplicates:
        what = "user, item and time" if data.times is not None else "user and item"
        findings.append(
            Finding("warning", "D401", f"{duplicates:,} rows repeat an earlier {what}; they are kept and count")
        )
    short = int((data.sequences.lengths == 1).sum())
    if short:
        findings.append(
            Finding(
                "warning",
                "D403",
                f"{short:,} of {data.num_users:,} users have one interaction: nothing can be predicted for them; they "
                "are not held out; min_interactions=2 drops them",
            )
        )
    return findings


def _about_ids(rows: Rows) -> list[Finding]:
    findings = []
    schema = rows.frame.collect_schema()
    for role in ("user", "item"):
        if schema[role] != pl.String:
            continue
        ids = rows.frame.select(pl.col(role).unique().sort().alias("id")).collect(engine="streaming")
        ids = ids.with_columns(stripped=pl.col("id").str.strip_chars())
        # 012, 12 and 12.0 are written differently and may be meant as one.
        ids = ids.with_columns(number=pl.col("stripped").str.replace(r"^0*([0-9]+)(?:\.0*)?$", "$1"))
        same_text = pl.len().over("stripped") > 1
        same_number = (pl.len().over("number") > 1) & ~same_text
        for code, confusable, how in (
            ("D404", same_text, "white space"),
            ("D405", same_number, "how a number is written"),
        ):
            found = ids.filter(confusable)["id"]
            if len(found):
                shown = ", ".join(repr(one) for one in found.head(SHOWN_IDS))
                findings.append(
                    Finding(
                        "warning",
                        code,
                        f"column {rows.columns[role]!r}: {len(found):,} {role} ids differ from another only by {how} "
                        f"({shown}{', ...' if len(found) > SHOWN_IDS else ''}); they stay different {role}s",
                    )
                )
    return findings


def _about_time(data: Interactions, rows: Rows, table: Table) -> list[Finding]:
    if not data.ordered:
        return [
            Finding(
                "warning",
                "D407",
                f"{table.name} has no order: splits by time and by last items are refused, halves are drawn at random",
            )
        ]
    if data.times is None:
        return [Finding("info", "D406", f"{table.name} has no time column: the order of the rows is taken")]
    if float(data.times.min()) == float(data.times.max()):
        return [
            Finding("warning", "D408", f"all rows of {table.name} have the same time: the order of the rows is taken")
        ]
    earlier = pl.col("time") < pl.col("time").shift().over("user")
    late = int(rows.frame.select(earlier.sum()).collect().item())
    if late:
        return [
            Finding("info", "D402", f"{late:,} rows are earlier than the row before of the same user; read sorts them")
        ]
    return []


def _about_rating(table: Table, rows: Rows) -> list[Finding]:
    columns = table.frame.collect_schema().names()
    found, _ = find_columns(columns, {"rating": None}, [], table.name)
    if "rating" in rows.columns or not found:
        return []
    message = f"column {found['rating']!r} looks like ratings and is not used; min_rating= keeps the good ones only"
    return [Finding("info", "D409", message)]
