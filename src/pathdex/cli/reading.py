"""The data argument and the options of `pathdex.read`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathdex.cli.command import gathers, option

PANEL = "Columns and filters"

DataPath = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, JSON lines, Parquet, RecBole .inter, a MovieLens archive or folder.", metavar="DATA"
    ),
]

FORMAT = option(
    "format",
    str,
    "File format, if the name does not show it: csv, tsv, jsonl, parquet, inter, movielens, amazon.",
    panel=PANEL,
)
COLUMNS = [
    option("user", str, "Column of user ids; found by its name if not given.", panel=PANEL),
    option("item", str, "Column of item ids; found by its name if not given.", panel=PANEL),
    option("time", str, "Column of timestamps; found by its name, or else the row order is used.", panel=PANEL),
]
OPTIONS = [
    *COLUMNS,
    option("rating", str, "Column of ratings; found by its name if not given.", panel=PANEL),
    option("min_rating", float, "Keep rows with at least this rating.", panel=PANEL),
    option("min_interactions", int, "Keep users with at least this many rows.", panel=PANEL),
    option("min_item_interactions", int, "Keep items with at least this many rows.", panel=PANEL),
    FORMAT,
]

takes_reading = gathers("reading", OPTIONS)
"""The function gets the given options as `reading`, ready for `pathdex.read`."""
takes_columns = gathers("reading", [*COLUMNS, FORMAT])
"""The same without filters."""
