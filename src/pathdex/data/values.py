"""The rules for ids, times and ratings, and the type that each is read as."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pathdex.data.findings import Finding, Level, finding

TIME_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""Units of times that are numbers, per second."""
MISSING = ("D201", "D204", "D206")
"""The codes of values that are missing."""
_FILL_IN = "fill in or remove these rows, or drop them with drop_missing=True (--drop-missing)"
_LOCAL_TIMES = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M")
_ZONED_TIMES = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z")
_ISO_TIMES = {**dict.fromkeys(_LOCAL_TIMES), **dict.fromkeys(_ZONED_TIMES, "UTC")}


@dataclass(frozen=True)
class Rule:
    """Rows where `broken` holds are reported as `<count> of <total> rows <what>`."""

    code: str
    broken: pl.Expr
    what: str
    remedy: str
    level: Level = "error"


@dataclass(frozen=True)
class Values:
    """The rules for a column, and its values in the type that reading uses."""

    rules: list[Rule]
    typed: pl.Expr
    is_integer: pl.Expr | None = None
    """For text that may hold integers: whether a value is one. If all are, the column is cast to Int64."""
    without_point: pl.Expr | None = None
    """For the same text: values such as `12.0`, which pandas writes for whole numbers, as `12`."""

    @property
    def missing(self) -> list[pl.Expr]:
        """Rows that have no value."""
        return [rule.broken for rule in self.rules if rule.code in MISSING]


def id_values(role: str, name: str, dtype: pl.DataType, *, text_file: bool) -> Values | Finding:
    """Ids become Int64 or String; text becomes Int64 only in text files, if every value prints as the same text."""
    column = pl.col(role)
    missing = column.is_null() | column.is_nan() if dtype.is_float() else column.is_null()
    rules = [Rule("D201", missing, f"have no {role} id", _FILL_IN)]
    if dtype == pl.String:
        if not text_file:
            return Values(rules, column)
        return Values(rules, column, is_integer(column), column.str.strip_suffix(".0"))
    if dtype.is_float():
        whole = (column.cast(pl.Int64, strict=False).cast(pl.Float64) == column).fill_null(False)
        rules.append(Rule("D203", ~missing & ~whole, "have a fraction for an id", "make the ids whole numbers or text"))
    elif dtype == pl.UInt64:
        rules.append(Rule("D203", column > 2**63 - 1, "have an id past 2^63", "make the ids text"))
    elif not (dtype.is_integer() or dtype == pl.Null):
        rule = f"column {name!r}: {dtype} cannot be an id; {role} ids must be whole numbers or text"
        return finding("error", "D202", rule, remedy="cast it")
    return Values(rules, column.cast(pl.Int64))


def time_values(role: str, name: str, dtype: pl.DataType, first: str | None) -> Values | Finding:
    """Numbers keep their type and unit, so that large ones sort exactly; dates become seconds since 1970 (UTC).

    `first` is the first value of a text column; it decides between numbers and ISO 8601.
    """
    column = pl.col(role)
    remedy = f"{_FILL_IN}, or drop the column to keep the order of the rows"
    missing = Rule("D204", column.is_null(), "have no timestamp", remedy)
    if dtype.is_float():
        broken = column.is_null() | column.is_nan() | column.is_infinite()
        return Values([Rule("D204", broken, "have no timestamp or NaN", remedy)], column)
    if dtype == pl.String:
        seconds = column.cast(pl.Float64, strict=False) if _is_number(first) else _iso_seconds(column)
        odd = column.is_not_null() & ~seconds.is_finite().fill_null(False)
        advice = "write all as numbers, or all as ISO 8601 such as 2014-07-23T18:00:00"
        return Values([missing, Rule("D205", odd, "have a timestamp that cannot be parsed", advice)], seconds)
    if dtype in (pl.Date, pl.Datetime):
        return Values([missing], _seconds(column))
    if dtype.is_integer() or dtype == pl.Null:
        return Values([missing], column)
    return finding(
        "error", "D205", f"column {name!r}: {dtype} cannot be a time", remedy="use numbers, dates or ISO 8601 text"
    )


def rating_values(role: str, name: str, dtype: pl.DataType) -> Values | Finding:
    """Ratings become Float64."""
    column = pl.col(role)
    number = column.cast(pl.Float64, strict=False)
    missing = column.is_null() | number.is_nan().fill_null(False)
    rules = [Rule("D206", missing, "have no rating or NaN", _FILL_IN)]
    if dtype == pl.String:
        odd = column.is_not_null() & number.is_null()
        rules.append(Rule("D207", odd, "have a rating that is not a number", "write ratings as numbers"))
    elif not (dtype.is_numeric() or dtype == pl.Null):
        return finding("error", "D207", f"column {name!r}: {dtype} cannot be a rating", remedy="use numbers")
    negative = (number < 0).fill_null(False)
    what, remedy = "have a rating below 0 and are kept", "min_rating= keeps only rows with at least that rating"
    return Values([*rules, Rule("D416", negative, what, remedy, "warning")], number)


def is_integer(column: pl.Expr) -> pl.Expr:
    """Whether text prints as the integer that it holds."""
    return (column.cast(pl.Int64, strict=False).cast(pl.String) == column).fill_null(False)


def _is_number(text: str | None) -> bool:
    try:
        float(text or "")
    except ValueError:
        return False
    return True


def _iso_seconds(column: pl.Expr) -> pl.Expr:
    read = column.str.to_datetime
    times = [read(form, strict=False, time_unit="us", time_zone=zone) for form, zone in _ISO_TIMES.items()]
    return pl.coalesce(*map(_seconds, [*times, column.str.to_date("%Y-%m-%d", strict=False)]))


def _seconds(column: pl.Expr) -> pl.Expr:
    return column.cast(pl.Datetime("us")).dt.timestamp("us") / 1e6
