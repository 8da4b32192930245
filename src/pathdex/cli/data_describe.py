"""`pathdex data describe`."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import typer

from pathdex.cli.console import out
from pathdex.cli.reading import DataPath, takes_reading
from pathdex.tables import TextTable, pairs


@takes_reading
def describe(
    source: DataPath,
    reading: dict[str, Any],
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the results to this file.")] = None,
) -> None:
    """Describe a data set: sizes, distributions, time span.

    Examples:

        pathdex data describe ratings.csv --min-rating 4 --min-interactions 10

        pathdex data describe events.parquet --user visitor --item sku --time at
    """
    from pathdex.data import describe as figures_of
    from pathdex.data import read
    from pathdex.storage.json_file import write_json

    figures = figures_of(read(source, **reading))
    console = out()
    console.print(pairs(str(source), _facts(figures)))
    quantiles = list(figures["sequence_length"])
    spread = [
        [name, *(f"{figures[key][quantile]:,.1f}" for quantile in quantiles)]
        for name, key in (("interactions per user", "sequence_length"), ("interactions per item", "item_count"))
    ]
    console.print(TextTable("\nDistributions", ["", *quantiles], spread))
    if json_file is not None:
        write_json(json_file, figures)


def _facts(figures: dict[str, Any]) -> dict[str, str]:
    history, span = figures["history"], figures["time"]
    facts = {
        "users": f"{figures['users']:,}",
        "items": f"{figures['items']:,}",
        "interactions": f"{figures['interactions']:,}",
        "density": f"{figures['density']:.4%}",
        "order": "known" if figures["ordered"] else "unknown (a matrix has no order)",
        "time": "none (the order of the rows is used)"
        if span is None
        else f"{_day(span['first'])} to {_day(span['last'])}",
        "top 1% of the items": f"{figures['top_1_percent_items_share']:.1%} of the interactions",
        "items seen once": f"{figures['items_seen_once']:,}",
        "users with one interaction": f"{figures['users_with_one_interaction']:,}",
        f"last {history['length']} items": f"whole history of {history['users_that_fit']:.1%} of the users, "
        f"{history['interactions_covered']:.1%} of the interactions",
    }
    notes = {name.replace("_", " "): f"{count:,}" for name, count in figures["notes"].items()}
    return {**facts, **notes}


def _day(seconds: float) -> str:
    """A date if the number can be seconds since 1970, otherwise the number."""
    if 1e8 < seconds < 1e10:
        return datetime.fromtimestamp(seconds, timezone.utc).date().isoformat()
    return f"{seconds:g}"
