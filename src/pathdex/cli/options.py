"""Options that several commands share, in groups. A function gets the given options of a group as one dict."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pathdex.cli.command import gathers, option
from pathdex.config import Config
from pathdex.errors import ConfigError, Problem

DataPath = Annotated[
    str,
    Argument(
        help="CSV, TSV, JSON, Parquet, Arrow, Excel, RecBole .inter, a MovieLens archive, a folder of files, a quoted "
        "pattern such as 'part*.csv', or a URL.",
        metavar="DATA",
    ),
]
JsonFile = Annotated[
    Path | None, Option("--json", help="Write the results to this file; - for standard output.", metavar="FILE")
]
CatalogueLists = Annotated[
    list[str] | None,
    Option(
        "--lists",
        help="Column of the table with several values per cell, and their separator: 'genres=,'; 'title=' for one "
        "value per cell. [default: | and ; are found] Repeatable.",
        metavar="COLUMN=SEPARATOR",
    ),
]
RUN_PANEL = "Run options"
_KINDS = {"int": int, "float": float, "str": str, "bool": bool}


def declared_lists(texts: Sequence[str] | None) -> dict[str, str | None]:
    """`lists` of `Attributes.read` from `COLUMN=SEPARATOR`."""
    found: dict[str, str | None] = {}
    for text in texts or ():
        column, sign, separator = text.partition("=")
        if not column or not sign:
            rule = "must be COLUMN=SEPARATOR"
            raise ConfigError([Problem(rule, "--lists", text, "write it as 'genres=,', or 'title=' for no lists")])
        found[column] = separator or None
    return found


def _group(panel: str, **options: tuple[type, str]) -> list[inspect.Parameter]:
    return [option(name, kind, help, panel=panel) for name, (kind, help) in options.items()]


_READ = "Columns and filters"
READING = _group(
    _READ,
    user=(str, "Column of user ids; found by its name if not given."),
    item=(str, "Column of item ids; found by its name if not given."),
    time=(str, "Column of timestamps; found by its name, or else the row order is used."),
    rating=(str, "Column of ratings; found by its name if not given."),
    min_rating=(float, "Keep rows with at least this rating."),
    min_interactions=(int, "Keep users with at least this many rows."),
    min_item_interactions=(int, "Keep items with at least this many rows."),
    format=(
        str,
        "File format, if the name does not show it: csv, tsv, parquet, arrow, jsonl, json, excel, inter, movielens, "
        "amazon.",
    ),
    separator=(str, "Separator of a text file; found in its first line if not given."),
    encoding=(str, "Encoding of a text file, such as latin-1 or cp1252; UTF-8 and UTF-16 are found."),
    time_unit=(str, "Unit of times that are numbers: s, ms, us or ns."),
)
READING += [
    option(
        "header",
        bool,
        "Whether a text file has a header; without one, columns are named 1, 2 ...",
        panel=_READ,
        switch=True,
    ),
    option(
        "drop_missing",
        bool,
        "Drop rows without an id, time or rating instead of refusing them.",
        panel=_READ,
        switch=True,
    ),
]
SPLIT = _group(
    "Held-out data",
    split=(str, "Kind of split: users (default, as in the paper), temporal or leave-last."),
    valid_users=(int, "Number of validation users; default: 5%, at most 1000; of few users up to 15%."),
    test_users=(int, "Number of test users; default: as many."),
    valid_share=(float, "Share of the interactions, for a temporal split; default 0.1."),
    test_share=(float, "Share of the interactions, for a temporal split; default 0.1."),
    k=(int, "Items held out per user, for leave-last; default 1."),
)
RUN = _group(
    RUN_PANEL,
    seed=(int, "Random seed; default 0."),
    device=(str, "Device: cpu (default), cuda, cuda:0 ..."),
    threads=(int, "Number of threads; default: all cores."),
)


ITEMS = _group(
    "Titles and details of items",
    items=(str, "Table with one row per item; its columns come back with every answer."),
    items_id=(str, "Item column of the table; found by its name if not given."),
    title=(str, "Column of titles; found by its name if not given."),
    item_columns=(str, "Other columns to keep: a,b,c; default all."),
)


def parameter_options() -> list[inspect.Parameter]:
    """One option per field of `Config`."""
    found = []
    for spec in dataclasses.fields(Config):
        kind = _KINDS[str(spec.type).split(" | ")[0]]
        words, choices, switch = [spec.metadata["help"]], spec.metadata["choices"], kind is bool
        if choices is not None:
            words.append(f"one of {', '.join(choices)}")
        if spec.default is not None:
            words.append(f"default {str(spec.default).lower() if switch else spec.default}")
        # A separate panel, since the `--no-` names would squeeze the columns of the others.
        panel = "Hyper-parameters (on or off)" if switch else "Hyper-parameters"
        found.append(option(spec.name, kind, "; ".join(words), panel=panel, switch=switch))
    return found


takes_reading = gathers("reading", READING)
"""Ready for `pathdex.read`."""
takes_columns = gathers("reading", [one for one in READING if one.name in ("user", "item", "time")])
"""The columns alone."""
takes_items = gathers("items", ITEMS, rename={"items": "source", "items_id": "item", "item_columns": "columns"})
"""`source` and the options of `ItemDetails.read`."""
takes_split = gathers("split", SPLIT, rename={"split": "kind"})
"""`kind` and the options of that kind."""
takes_run_options = gathers("run_options", RUN)
takes_machine = gathers("run_options", [one for one in RUN if one.name != "seed"])
takes_parameters = gathers("parameters", parameter_options())
"""Hyper-parameters of Deep Retrieval."""
