"""Text columns whose cells hold several values: `drama|war`, `drama; war`, or `['drama', 'war']`."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from pathdex.errors import DataError, Problem, did_you_mean

SEPARATORS = ("|", ";")
"""Separators that are found; others are declared."""
LITERAL = "[]"
"""Declares cells that are written as lists."""
MAX_LITERAL = 100_000
"""Characters of a cell that is read as a list."""


def find_separator(values: pl.Series) -> str | None:
    """What separates the values in the cells of a text column; None if each cell is one value.

    A separator counts if most of the values in cells that have it occur in other cells too: genres do, and a title with
    a semicolon in it does not.
    """
    cells = values.drop_nulls()
    cells = cells.filter(cells != "")
    if not len(cells):
        return None
    if (cells.str.starts_with("[") & cells.str.ends_with("]")).all() and _literal(cells) is not None:
        return LITERAL
    for separator in SEPARATORS:
        several = cells.str.contains(separator, literal=True)
        if not several.any():
            continue
        rows = pl.DataFrame({"row": pl.arange(len(cells), eager=True), "cell": cells, "several": several})
        parts = rows.with_columns(pl.col("cell").str.split(separator)).explode("cell")
        parts = parts.with_columns(pl.col("cell").str.strip_chars()).filter(pl.col("cell") != "")
        parts = parts.with_columns(pl.col("row").n_unique().over("cell").alias("rows"))
        split = parts.filter("several")
        if split.height and 2 * split.filter(pl.col("rows") > 1).height > split.height:
            return separator
    return None


def split_cells(values: pl.Series, separator: str) -> pl.Series:
    """The cells as lists of text, without spaces around values and without empty ones; `DataError` if they are not."""
    if separator == LITERAL:
        lists = _literal(values)
        if lists is None:
            rule = f"column {values.name!r} has cells that are not written as lists"
            raise DataError(Problem(rule, "lists", {values.name: separator}, "write them as ['a', 'b']"))
        return lists.alias(values.name)
    split = values.str.split(separator).list.eval(pl.element().str.strip_chars())
    return split.list.eval(pl.element().filter(pl.element() != "")).alias(values.name)


def check_lists(lists: Mapping[str, str | None], frame: pl.DataFrame, source: str) -> None:
    """Raise `DataError` unless every declared column is a text column of the table."""
    for name, separator in lists.items():
        if name not in frame.columns:
            rule = f"{source} has no column {name!r}{did_you_mean(name, frame.columns)}"
            raise DataError(Problem(rule, "lists", dict(lists)))
        if separator is not None and (not isinstance(separator, str) or not separator):
            rule = f"the separator of {name!r} must be text, or None for a column without lists"
            raise DataError(Problem(rule, "lists", dict(lists)))
        if separator is not None and frame[name].dtype not in (pl.String, pl.Categorical, pl.Enum):
            rule = f"column {name!r} of {source} is not text but {frame[name].dtype}"
            raise DataError(Problem(rule, "lists", dict(lists), "leave it out"))


def _literal(cells: pl.Series) -> pl.Series | None:
    """Cells such as `['a', "b"]` or `[1, 2]` as lists of text, null where missing; None if one is not a list."""
    found: list[list[str] | None] = []
    for cell in cells:
        parsed = None if cell is None or cell == "" else _parse(cell)
        if parsed is None and cell:
            return None
        found.append(parsed)
    return pl.Series(found, dtype=pl.List(pl.String))


def _parse(cell: str) -> list[str] | None:
    if len(cell) > MAX_LITERAL:
        return None
    parsed: Any
    try:
        parsed = json.loads(cell)
    except (ValueError, RecursionError):
        try:
            parsed = ast.literal_eval(cell)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None
    if not isinstance(parsed, list) or not all(isinstance(one, str | int | float) for one in parsed):
        return None
    return [one if isinstance(one, str) else json.dumps(one) for one in parsed]
