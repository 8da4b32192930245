"""Checks the values of a table and gives it the one form that reading starts from: columns user, item, time, rating.

All checks run as aggregates in one pass over the source, so that a file larger than memory can be checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from pathdex.data.columns import find_columns
from pathdex.data.findings import Finding, error
from pathdex.data.formats import Table, reading

SHOWN_ROWS = 5
_TIME_FORMATS = (
    "%Y-%m-%dT%H:%M:%S%.f%#z",
    "%Y-%m-%d %H:%M:%S%.f%#z",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M",
)


@dataclass(frozen=True)
class Rows:
    """A table whose columns were found and checked."""

    frame: pl.LazyFrame
    """Columns `user`, `item` and, where the source has them, `time` and `rating`."""
    count: int
    findings: tuple[Finding, ...]
    columns: Mapping[str, str]
    """The source's column of each role in `frame`."""


@dataclass(frozen=True)
class _Rule:
    """Rows where `broken` holds are reported as `<count> of <rows> rows <what>`."""

    code: str
    column: str
    broken: pl.Expr
    what: str
    remedy: str


def check_rows(table: Table, asked: Mapping[str, str | None], *, use_rating: bool) -> Rows:
    """Find the columns, check every value, and type them. With errors among the findings, `frame` is not to be used."""
    with reading(table.name):
        schema = table.frame.collect_schema()
    wanted = {role: name for role, name in asked.items() if role != "rating" or use_rating}
    required = ["user", "item", *(["rating"] if use_rating else [])]
    columns, problems = find_columns(schema.names(), wanted, required, table.name)
    if problems:
        return Rows(table.frame, 0, tuple(problems), columns)
    frame = table.frame.select(pl.col(name).alias(role) for role, name in columns.items())
    rules: list[_Rule] = []
    for role, name in columns.items():
        dtype = schema[name]
        if dtype in (pl.Categorical, pl.Enum):
            frame, dtype = frame.with_columns(pl.col(role).cast(pl.String)), pl.String()
        found = _RULES[role](role, name, dtype)
        if isinstance(found, Finding):
            problems.append(found)
        else:
            rules.extend(found)
    count, broken = _apply(frame, rules, table.name)
    problems += broken
    if count == 0:
        problems = [error("D102", f"{table.name} has no rows")]
    if not problems:
        frame = _typed(frame, table)
    return Rows(frame, count, tuple(problems), columns)


def _apply(frame: pl.LazyFrame, rules: list[_Rule], name: str) -> tuple[int, list[Finding]]:
    with reading(name):
        counts = frame.select(
            pl.len().alias("rows"), *(rule.broken.sum().alias(str(place)) for place, rule in enumerate(rules))
        ).collect(engine="streaming")
        total = int(counts["rows"][0])
        problems = []
        for place, rule in enumerate(rules):
            broken = int(counts[str(place)][0] or 0)
            if broken:
                first = frame.with_row_index("row", offset=1).filter(rule.broken).select("row").head(SHOWN_ROWS)
                shown = ", ".join(str(row) for row in first.collect()["row"])
                more = ", ..." if broken > SHOWN_ROWS else ""
                problems.append(
                    error(
                        rule.code,
                        f"column {rule.column!r} of {name}: {broken:,} of {total:,} rows {rule.what} "
                        f"(rows {shown}{more}, the first row of data is 1); {rule.remedy}",
                    )
                )
    return total, problems


def _id_rules(role: str, name: str, dtype: pl.DataType) -> list[_Rule] | Finding:
    column = pl.col(role)
    missing = column.is_null()
    if dtype.is_float():
        missing = missing | column.is_nan()
    rules = [_Rule("D201", name, missing, f"have no {role} id", "fill in or remove these rows")]
    if dtype.is_float():
        known = column.is_not_null() & column.is_not_nan()
        odd = known & (column.cast(pl.Int64, strict=False).cast(pl.Float64) != column).fill_null(True)
        rules.append(_Rule("D203", name, odd, "have a fraction for an id", "make the ids whole numbers or text"))
    elif dtype == pl.UInt64:
        rules.append(_Rule("D203", name, column > 2**63 - 1, "have an id past 2^63", "make the ids text"))
    elif not (dtype.is_integer() or dtype in (pl.String, pl.Null)):
        return error(
            "D202", f"column {name!r}: {dtype} cannot be an id; {role} ids must be whole numbers or text; cast it"
        )
    return rules


def _time_rules(role: str, name: str, dtype: pl.DataType) -> list[_Rule] | Finding:
    column = pl.col(role)
    remedy = "fill in or remove these rows, or drop the column to keep the order of the rows"
    missing = _Rule("D204", name, column.is_null(), "have no timestamp", remedy)
    if dtype.is_float():
        broken = column.is_null() | column.is_nan() | column.is_infinite()
        return [_Rule("D204", name, broken, "have no timestamp or NaN", remedy)]
    if dtype == pl.String:
        odd = column.is_not_null() & ~_time_of_text(column).is_finite().fill_null(False)
        example = "write seconds, or ISO 8601 such as 2014-07-23T18:00:00"
        return [missing, _Rule("D205", name, odd, "have a timestamp that cannot be understood", example)]
    if dtype.is_integer() or dtype in (pl.Date, pl.Datetime, pl.Null):
        return [missing]
    return error("D205", f"column {name!r}: {dtype} cannot be a time; use numbers, dates or ISO 8601 text")


def _rating_rules(role: str, name: str, dtype: pl.DataType) -> list[_Rule] | Finding:
    column = pl.col(role)
    remedy = "fill in or remove these rows"
    if dtype == pl.String:
        number = column.cast(pl.Float64, strict=False)
        odd = column.is_not_null() & number.is_null()
        rules = [_Rule("D207", name, odd, "have a rating that is not a number", "write ratings as numbers")]
    elif dtype.is_numeric() or dtype == pl.Null:
        number, rules = column.cast(pl.Float64), []
    else:
        return error("D207", f"column {name!r}: {dtype} cannot be a rating; ratings must be numbers")
    return [
        _Rule("D206", name, column.is_null() | number.is_nan().fill_null(False), "have no rating or NaN", remedy),
        *rules,
        _Rule("D208", name, (number < 0).fill_null(False), "have a rating below 0", "shift the scale to start at 0"),
    ]


_RULES = {"user": _id_rules, "item": _id_rules, "time": _time_rules, "rating": _rating_rules}


def _typed(frame: pl.LazyFrame, table: Table) -> pl.LazyFrame:
    """Ids as Int64 or String, times as numbers in their own unit (seconds for dates), ratings as Float64."""
    schema = frame.collect_schema()
    expressions = []
    for role, dtype in schema.items():
        column = pl.col(role)
        if role in ("user", "item"):
            if dtype == pl.String:
                whole = not table.typed and _all_whole(frame, column, table.name)
                expressions.append(column.cast(pl.Int64) if whole else column)
            else:
                expressions.append(column.cast(pl.Int64))
        elif role == "rating":
            expressions.append(column.cast(pl.Float64))
        elif dtype == pl.String:
            expressions.append(_time_of_text(column))
        elif dtype in (pl.Date, pl.Datetime):
            expressions.append(_seconds(column))
        else:
            expressions.append(column)
    return frame.select(expressions)


def _all_whole(frame: pl.LazyFrame, column: pl.Expr, name: str) -> bool:
    """True where each id is written as an integer is printed, so that the same text can come back."""
    same = column.cast(pl.Int64, strict=False).cast(pl.String) == column
    with reading(name):
        return bool(frame.select(same.fill_null(False).all()).collect(engine="streaming").item())


def _time_of_text(column: pl.Expr) -> pl.Expr:
    zoned, plain = _TIME_FORMATS[:2], _TIME_FORMATS[2:]
    return pl.coalesce(
        column.cast(pl.Float64, strict=False),
        *(_seconds(column.str.to_datetime(form, strict=False, time_unit="us")) for form in plain),
        *(_seconds(column.str.to_datetime(form, strict=False, time_unit="us", time_zone="UTC")) for form in zoned),
        _seconds(column.str.to_date("%Y-%m-%d", strict=False)),
    )


def _seconds(column: pl.Expr) -> pl.Expr:
    return column.cast(pl.Datetime("us")).dt.timestamp("us") / 1e6
