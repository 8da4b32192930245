"""Options that several commands share, in groups. A function gets the given options of a group as one dict."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pathdex.cli.command import gathers, option
from pathdex.config import Config

DataPath = Annotated[
    Path, Argument(help="CSV, TSV, JSON lines, Parquet, RecBole .inter, a MovieLens archive or folder.", metavar="DATA")
]
JsonFile = Annotated[Path | None, Option("--json", help="Write the results to this file.", metavar="FILE")]
RUN_PANEL = "Run options"
_KINDS = {"int": int, "float": float, "str": str, "bool": bool}


def _group(panel: str, **options: tuple[type, str]) -> list[inspect.Parameter]:
    return [option(name, kind, help, panel=panel) for name, (kind, help) in options.items()]


READING = _group(
    "Columns and filters",
    user=(str, "Column of user ids; found by its name if not given."),
    item=(str, "Column of item ids; found by its name if not given."),
    time=(str, "Column of timestamps; found by its name, or else the row order is used."),
    rating=(str, "Column of ratings; found by its name if not given."),
    min_rating=(float, "Keep rows with at least this rating."),
    min_interactions=(int, "Keep users with at least this many rows."),
    min_item_interactions=(int, "Keep items with at least this many rows."),
    format=(str, "File format, if the name does not show it: csv, tsv, jsonl, parquet, inter, movielens, amazon."),
)
SPLIT = _group(
    "Held-out data",
    split=(str, "Kind of split: users (default, as in the paper), temporal or leave-last."),
    valid_users=(int, "Number of validation users; default: 5%, at most 1000."),
    test_users=(int, "Number of test users; default: 5%, at most 1000."),
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
takes_columns = gathers("reading", [one for one in READING if one.name in ("user", "item", "time", "format")])
"""The same without ratings and filters."""
takes_split = gathers("split", SPLIT, rename={"split": "kind"})
"""`kind` and the options of that kind."""
takes_run_options = gathers("run_options", RUN)
takes_machine = gathers("run_options", [one for one in RUN if one.name != "seed"])
takes_parameters = gathers("parameters", parameter_options())
"""Hyper-parameters of Deep Retrieval."""
