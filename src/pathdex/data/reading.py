"""How a source is read: its columns, its filters, and the form of its files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from pathdex.data.formats import open_source
from pathdex.data.rows import Rows, check_rows, unused_dislikes
from pathdex.data.source_table import FileOptions, Source, SourceTable
from pathdex.data.values import TIME_UNITS
from pathdex.errors import DataError, Problem, did_you_mean
from pathdex.parameters import count_problems

COLUMNS = ("user", "item", "time", "rating")
"""The options that name a column."""
COUNT_FILTERS = ("min_interactions", "min_item_interactions")
"""Filters that choose what to train on; a history may be shorter."""


@dataclass(frozen=True)
class Reading:
    """The options of `read`; None where an option is left to the source. Models remember it for later files."""

    user: str | None = None
    item: str | None = None
    time: str | None = None
    rating: str | None = None
    min_rating: float | None = None
    min_interactions: int | None = None
    min_item_interactions: int | None = None
    format: str | None = None
    separator: str | None = None
    encoding: str | None = None
    header: bool | None = None
    time_unit: str | None = None
    drop_missing: bool | None = None

    def __post_init__(self) -> None:
        problems, remedy = [], "leave it out to keep all"
        least: object = self.min_rating
        if least is not None and (isinstance(least, bool) or not isinstance(least, int | float)):
            problems.append(Problem("must be a number", "min_rating", least, remedy))
        elif isinstance(least, float) and not math.isfinite(least):
            problems.append(Problem("must be a finite number", "min_rating", least, remedy))
        for name in COUNT_FILTERS:
            if (value := getattr(self, name)) is not None:
                problems += count_problems(name, value, remedy=remedy)
        if self.time_unit is not None and self.time_unit not in TIME_UNITS:
            rule = f"must be one of {', '.join(TIME_UNITS)}"
            problems.append(Problem(rule, "time_unit", self.time_unit, "leave it out for dates and ISO 8601"))
        drop: object = self.drop_missing
        if drop is not None and not isinstance(drop, bool):
            problems.append(Problem("must be true or false", "drop_missing", drop))
        for name in (*COLUMNS, "format"):
            named: object = getattr(self, name)
            if named is not None and not isinstance(named, str):
                problems.append(Problem("must be text", name, named))
        problems += self.file_options.problems()
        if problems:
            raise DataError(*problems)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Reading:
        """What `to_dict` gave; `DataError` for anything else."""
        known = [field.name for field in fields(cls)]
        unknown = [name for name in stored if name not in known]
        if unknown:
            raise DataError(*(Problem(f"no such option of read{did_you_mean(name, known)}", name) for name in unknown))
        return cls(**stored)

    def to_dict(self) -> dict[str, Any]:
        """The options that are set."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items()) or "as found"

    @property
    def file_options(self) -> FileOptions:
        """The options about files, which frames do not have."""
        return FileOptions(self.format, self.separator, self.encoding, self.header)

    def open(self, source: Source, *, scratch: Path | None = None) -> tuple[SourceTable, Rows]:
        """Open a source and check its rows. The column of ratings is read only if it is named or needed.

        With a folder `scratch`, compressed files are decompressed there instead of in memory.
        """
        named = {name: getattr(self, name) for name in COLUMNS}
        if self.rating is None and self.min_rating is None:
            del named["rating"]
        table = open_source(source, replace(self.file_options, scratch=scratch))
        rows = check_rows(table, named, drop_missing=bool(self.drop_missing))
        if "rating" not in named:
            rows = replace(rows, findings=(*rows.findings, *unused_dislikes(table)))
        if self.min_rating is not None:  # It says what becomes of ratings below zero.
            rows = replace(rows, findings=tuple(one for one in rows.findings if one.code != "D416"))
        return table, rows

    def with_columns(self, columns: Mapping[str, str]) -> Reading:
        """The same with every column named that was taken for a role."""
        return Reading(**{**vars(self), **columns})

    def all_dropped(self, name: str, count: int) -> Problem:
        """The problem that no row of a source is kept."""
        filters = ("min_rating", *COUNT_FILTERS)
        values = ", ".join(f"{key}={getattr(self, key)}" for key in filters)
        return Problem(f"none of the {count:,} rows of {name} is kept with {values}", remedy="lower them")
