"""Reads a later source the way a model's training data was read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pathdex.data.columns import guess_column
from pathdex.data.formats import is_text_format, open_source, own_format
from pathdex.data.reading import COLUMNS, Reading
from pathdex.data.source_table import FileOptions, Source, reading

TEXT_OPTIONS = ("separator", "encoding", "header")
FILE_OPTIONS = ("format", *TEXT_OPTIONS)


@dataclass(frozen=True)
class RememberedReading:
    """How a later source is read, and which of it comes from the training data."""

    reading: Reading
    applied: Mapping[str, Any]
    """The remembered options that apply."""
    not_applied: Mapping[str, str]
    """Remembered options that do not fit the source, with the reason."""

    def __str__(self) -> str:
        applied = ", ".join(f"{name}={value!r}" for name, value in self.applied.items())
        words = [f"read like the training data: {applied}"] if applied else []
        words += [f"{name} is not applied: {reason}" for name, reason in self.not_applied.items()]
        return "; ".join(words)


def read_like(remembered: Reading, source: Source, given: Reading | None = None) -> RememberedReading:
    """The reading of a later source: options as given, and the others as remembered where they fit the source.

    A column is remembered if the source has it, and is found by its name otherwise. Options of text files are
    remembered for text files, a format for files whose name does not show theirs. Filters by count chose what to
    train on and are never applied to later sources.
    """
    known, chosen = remembered.to_dict(), {} if given is None else given.to_dict()
    applied = _file_options(known, chosen, source)
    files = {name: value for name, value in {**applied, **chosen}.items() if name in FILE_OPTIONS}
    table = open_source(source, FileOptions(**files))
    with reading(table.name):
        columns = table.frame.collect_schema().names()
    applied |= {role: known[role] for role in COLUMNS if role not in chosen and known.get(role) in columns}
    applied |= {name: known[name] for name in ("time_unit", "drop_missing") if name in known and name not in chosen}
    not_applied = {}
    if "min_rating" in known and "min_rating" not in chosen:
        if "rating" in applied or "rating" in chosen or guess_column("rating", columns) is not None:
            applied["min_rating"] = known["min_rating"]
        else:
            not_applied["min_rating"] = f"{table.name} has no column of ratings"
    if "min_rating" not in applied and "min_rating" not in chosen:
        applied.pop("rating", None)
    return RememberedReading(Reading(**{**applied, **chosen}), applied, not_applied)


def _file_options(known: Mapping[str, Any], chosen: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """The remembered options that fit a file."""
    if not isinstance(source, str | os.PathLike):
        return {}
    own = own_format(source)
    applied = {"format": known["format"]} if own is None and "format" in known and "format" not in chosen else {}
    if is_text_format(chosen.get("format") or own or applied.get("format")):
        applied |= {name: known[name] for name in TEXT_OPTIONS if name in known and name not in chosen}
    return applied
