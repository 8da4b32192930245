"""`pathdex live`: look at a live folder, compact it, go back to an older base."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathdex.cli.console import out
from pathdex.tables import TextTable, pairs

Folder = Annotated[Path, typer.Argument(help="A live folder.", show_default=False)]


def status(folder: Folder) -> None:
    """Show the base, the deltas and the older bases of a live folder.

    Example:

        pathdex live status live/
    """
    from pathdex.storage.live_folder import read_current

    version, console = read_current(folder), out()
    deltas = f"{version.first_delta} to {version.last_delta}" if version.deltas else "none"
    facts = {"base": version.base.name, "deltas after it": deltas, "version": version.digest[:12]}
    console.print(pairs(f"Live folder {folder}", facts))
    rows = [[str(one.number), str(one.delta), one.digest[:12]] for one in version.bases]
    console.print(TextTable("\nBases", ["base", "contains deltas up to", "version"], rows, text_columns=3))


def compact(folder: Folder) -> None:
    """Write the current state as a new base and prune old bases and deltas.

    The process that publishes does this by itself; use the command while none is running.

    Example:

        pathdex live compact live/
    """
    from pathdex.recommenders.live_publisher import LivePublisher

    with LivePublisher(folder) as publisher:
        publisher.compact()
        out().print(f"{folder} now has the base {publisher.version.base.name}")


def rollback(
    folder: Folder,
    base: Annotated[int | None, typer.Option(help="Number of the base; default: the one before the current.")] = None,
) -> None:
    """Make an older base current again. Servers that follow the folder load it.

    Example:

        pathdex live rollback live/ --base 6
    """
    from pathdex.recommenders.live_publisher import LivePublisher

    with LivePublisher(folder) as publisher:
        out().print(f"{folder} is back at the base {publisher.rollback(base).name}")
