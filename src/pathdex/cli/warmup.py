"""`pathdex warmup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathdex.cli.command import write_result
from pathdex.cli.console import out
from pathdex.cli.options import JsonFile
from pathdex.tables import pairs


def warmup(
    folder: Annotated[
        Path | None,
        typer.Argument(help="A run or a saved model. [default: a small built-in model]", metavar="[RUN]"),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Compile and cache on disk what a server of the model needs; without RUN, what training and queries need.

    Examples:

        pathdex warmup

        pathdex warmup runs/first
    """
    from pathdex.server.warmup import warm_up

    report = warm_up(folder)
    shown = {name: value for name, value in vars(report).items() if name != "caches"}
    model = None if folder is None else str(folder)
    write_result(json_file, {"model": model, **shown, "caches": [str(one) for one in report.caches]})
    console = out()
    console.print(
        pairs(
            "Warm-up",
            {
                "model": "a small built-in one" if folder is None else str(folder),
                "loading and compiling": f"{report.seconds:.1f} s",
                "one query": f"{1000 * report.query_seconds:.2f} ms",
                "compiled code": ", ".join(str(place) for place in report.caches) or "in memory only",
            },
        )
    )
