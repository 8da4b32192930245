"""`pathdex warmup`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathdex.cli.console import out
from pathdex.tables import pairs


def warmup(
    folder: Annotated[
        Path | None,
        typer.Argument(help="A run or a saved model. [default: a small model of its own]", metavar="[RUN]"),
    ] = None,
) -> None:
    """Compile what queries need, so that a server on this machine starts at once. Compiled code is kept on disk.

    Examples:

        pathdex warmup

        pathdex warmup runs/first
    """
    from pathdex.server.warmup import warm_up

    done = warm_up(folder)
    console = out()
    console.print(
        pairs(
            "Warm",
            {
                "model": "a small one of its own" if folder is None else str(folder),
                "opening and compiling": f"{done.seconds:.1f} s",
                "one query now": f"{1000 * done.query_seconds:.2f} ms",
                "compiled code": ", ".join(str(place) for place in done.caches) or "kept in memory only",
            },
        )
    )
