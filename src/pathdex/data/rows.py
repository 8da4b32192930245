"""Checks the values of a table and types its columns: user, item, time, rating.

All checks run as aggregates in one pass, so a file larger than memory can be checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from pathdex.data.columns import ambiguous_columns, find_columns, guess_column
from pathdex.data.findings import Finding, finding
from pathdex.data.source_table import SourceTable, reading
from pathdex.data.values import Rule, Values, id_values, is_integer, rating_values, time_values
from pathdex.errors import DataError, Problem

SHOWN_ROWS = 5


FIRST_ROWS = 10_000
"""Rows of a column that is not read which are looked at."""


@dataclass(frozen=True)
class Rows:
    """The rows of a source, checked and typed."""

    frame: pl.LazyFrame
    """Columns `user`, `item` and, where the source has them, `time` and `rating`."""
    count: int
    findings: tuple[Finding, ...]
    columns: Mapping[str, str]
    """The source's column of each role in `frame`."""
    dropped: int = 0
    """Further rows, which lacked a value and were dropped."""
    parts: tuple[pl.LazyFrame, ...] = ()
    """Frames that are `frame` one after the other: one per file, where the source has several."""

    @property
    def errors(self) -> list[Finding]:
        return [one for one in self.findings if one.level == "error"]

    @property
    def warnings(self) -> list[Finding]:
        return [one for one in self.findings if one.level == "warning"]


def check_rows(table: SourceTable, named: Mapping[str, str | None], *, drop_missing: bool = False) -> Rows:
    """Find the columns, check and type every value. Do not use `frame` if there are errors among the findings.

    With `drop_missing`, rows that lack a value are dropped and counted.
    """
    with reading(table.name):
        schema = table.frame.collect_schema()
    columns, problems = find_columns(schema.names(), named, table.name)
    if problems:
        return Rows(table.frame, 0, tuple(problems), columns)
    problems += [*table.findings, *ambiguous_columns(schema.names(), named, table.name)]
    taken = [_plain(pl.col(name), schema[name]).alias(role) for role, name in columns.items()]
    frame, parts = table.frame.select(taken), [part.select(taken) for part in table.parts]
    values: dict[str, Values] = {}
    for role, name in columns.items():
        found = _values(frame, role, name, table)
        if isinstance(found, Finding):
            problems.append(found)
        else:
            values[role] = found
    dropped = 0
    if drop_missing and values:
        lacking = pl.any_horizontal(one for column in values.values() for one in column.missing)
        with reading(table.name):
            dropped = int(frame.select(lacking.sum()).collect(engine="streaming").item())
        frame, parts = frame.filter(~lacking), [part.filter(~lacking) for part in parts]
    counts = _count(frame, values, table.name)
    total = int(counts["rows"])
    if total == 0:
        reason = f"{table.name} has no rows" + (f" in which no value is missing, of {dropped:,}" if dropped else "")
        return Rows(frame, 0, (finding("error", "D102", reason),), columns, dropped)
    for role, column in values.items():
        for place, rule in enumerate(column.rules):
            if broken := counts[f"{role} {place}"]:
                problems.append(_problem(frame, rule, broken, total, f"column {columns[role]!r} of {table.name}"))
    typed = []
    for role, column in values.items():
        given = column.typed
        if counts.get(f"{role} integers"):
            given = given.cast(pl.Int64)
        elif counts.get(f"{role} decimals") and column.without_point is not None:
            given = column.without_point.cast(pl.Int64)
            what = f"column {columns[role]!r} of {table.name}: {role} ids such as 12.0 are read as whole numbers (12)"
            problems.append(finding("warning", "D413", what, remedy="write them without .0"))
        typed.append(given.alias(role))
    if not any(one.level == "error" for one in problems):
        frame, parts = frame.select(typed), [part.select(typed) for part in parts]
    return Rows(frame, total, tuple(problems), columns, dropped, tuple(parts))


def unused_dislikes(table: SourceTable) -> list[Finding]:
    """A warning if a column of ratings that is not read begins with ratings below zero, as in +1/-1 votes."""
    schema = table.frame.collect_schema()
    column = guess_column("rating", schema.names())
    if column is None or not (schema[column].is_numeric() or schema[column] == pl.String):
        return []
    with reading(table.name):
        first = table.frame.select(pl.col(column).cast(pl.Float64, strict=False)).head(FIRST_ROWS).collect()
    if not (first.to_series() < 0).any():
        return []
    rule = f"column {column!r} of {table.name} is not used, and rows with a value below 0 in it are kept"
    return [finding("warning", "D416", rule, remedy="min_rating=0 drops them (--min-rating 0)")]


def refuse_repeats(ids: pl.Series, column: str, name: str) -> None:
    """Raise `DataError` if an item has more than one row in a table that must have one per item."""
    repeated = ids.filter(ids.is_duplicated()).unique(maintain_order=True)
    if len(repeated):
        more = ", ..." if len(repeated) > SHOWN_ROWS else ""
        shown = ", ".join(map(repr, repeated.head(SHOWN_ROWS))) + more
        rule = f"column {column!r} of {name}: {len(repeated):,} items have more than one row ({shown})"
        remedy = "keep one row per item; several values of an item go into a list column"
        raise DataError(Problem(rule, remedy=remedy))


def _plain(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    return column.cast(pl.String) if dtype in (pl.Categorical, pl.Enum) else column


def _values(frame: pl.LazyFrame, role: str, name: str, table: SourceTable) -> Values | Finding:
    dtype = frame.collect_schema()[role]
    if role == "rating":
        return rating_values(role, name, dtype)
    if role == "time":
        first = None
        if dtype == pl.String:
            with reading(table.name):
                known = frame.select(role).filter(pl.col(role).is_not_null()).head(1).collect(engine="streaming")
            first = known.item() if known.height else None
        return time_values(role, name, dtype, first)
    return id_values(role, name, dtype, text_file=not table.typed)


def _count(frame: pl.LazyFrame, values: Mapping[str, Values], name: str) -> dict[str, int]:
    """Counted in one pass: rows, rows that break each rule, and whether text columns hold only integers."""
    aggregates = [pl.len().alias("rows")]
    for role, column in values.items():
        aggregates += [rule.broken.sum().alias(f"{role} {place}") for place, rule in enumerate(column.rules)]
        if column.is_integer is not None:
            aggregates.append(column.is_integer.all().alias(f"{role} integers"))
        if column.without_point is not None:
            aggregates.append(is_integer(column.without_point).all().alias(f"{role} decimals"))
    with reading(name):
        return frame.select(aggregates).collect(engine="streaming").row(0, named=True)


def _problem(frame: pl.LazyFrame, rule: Rule, broken: int, total: int, where: str) -> Finding:
    first = frame.with_row_index("row", offset=1).filter(rule.broken).select("row").head(SHOWN_ROWS).collect()
    shown = ", ".join(str(row) for row in first["row"]) + (", ..." if broken > SHOWN_ROWS else "")
    what = f"{where}: {broken:,} of {total:,} rows {rule.what} (rows {shown}, the first row of data is 1)"
    return finding(rule.level, rule.code, what, remedy=rule.remedy)
