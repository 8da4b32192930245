"""`pathdex live`: look at a live folder, compact it, go back to an older base."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathdex.cli.command import write_result
from pathdex.cli.console import out
from pathdex.cli.options import JsonFile
from pathdex.errors import BundleError
from pathdex.tables import TextTable, pairs

Folder = Annotated[Path, typer.Argument(help="A live folder.", show_default=False)]


def status(folder: Folder, json_file: JsonFile = None) -> None:
    """Show the base, the deltas and the older bases of a live folder: when each was written, and its items.

    Examples:

        pathdex live status live/

        pathdex live status live/ --json status.json
    """
    from pathdex.recommenders.live_status import live_status

    _check_published(folder)
    found, console = live_status(folder), out()
    deltas = f"{found.first_delta} to {found.last_delta}" if found.last_delta >= found.first_delta else "none"
    facts = {
        "base": found.base,
        "deltas after it": deltas,
        "version": found.digest[:12],
        "last publish": found.published,
    }
    console.print(pairs(f"Live folder {folder}", facts))
    rows = [
        [
            f"{one.number}{' (current)' if one.is_current else ''}",
            one.written or "cannot be read",
            "" if one.items is None else f"{one.items:,}",
            str(one.delta),
            one.digest[:12],
        ]
        for one in found.bases
    ]
    columns = ["base", "written", "items", "contains deltas up to", "version"]
    console.print(TextTable("\nBases", columns, rows, text_columns=2))
    write_result(json_file, found.to_dict())


def compact(folder: Folder, json_file: JsonFile = None) -> None:
    """Write the current state as a new base and prune old bases and deltas.

    The process that publishes does this by itself; use the command while none is running.

    Example:

        pathdex live compact live/
    """
    from pathdex.recommenders.live_publisher import LivePublisher
    from pathdex.recommenders.live_status import live_status
    from pathdex.storage.live_folder import read_current

    _check_published(folder)
    read_current(folder)  # Opening it for publishing would create it.
    with LivePublisher(folder) as publisher:
        publisher.compact()
        out().print(f"{folder} now has the base {publisher.version.base.name}")
    write_result(json_file, live_status(folder).to_dict())


def rollback(
    folder: Folder,
    base: Annotated[int | None, typer.Option(help="Number of the base; default: the one before the current.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Make an older base current again. Servers that follow the folder load it. Stop the stream or publisher first.

    Example:

        pathdex live rollback live/ --base 6
    """
    from pathdex.recommenders.live_publisher import LivePublisher
    from pathdex.recommenders.live_status import live_status
    from pathdex.storage.live_folder import read_current
    from pathdex.storage.run_folder import STREAM_REQUEST

    _check_published(folder)
    read_current(folder)  # Opening it for publishing would create it.
    with LivePublisher(folder) as publisher:
        version = publisher.version
        if base is None and version.deltas and version.bases[0] == version.base:
            number, deltas = version.base.number, len(version.deltas)
            dropped = f"the {deltas:,} deltas" if deltas > 1 else "the delta"
            way = f"to drop {dropped} after it, run: pathdex live rollback {folder} --base {number}"
            raise BundleError(f"{folder} keeps no base before the current one, {number}; {way}")
        publisher.rollback(base)
    console, found = out(), live_status(folder)
    write_result(json_file, found.to_dict())
    console.print(f"{folder} is back at the base {found.current}", soft_wrap=True)
    if (folder / STREAM_REQUEST).exists():
        told = (
            "If the stream continues, it publishes its own state again. To learn on from this base, start a new stream"
        )
        console.print(f"{told} --from {folder}.", soft_wrap=True)


def _check_published(folder: Path) -> None:
    from pathdex.storage.live_folder import is_live_folder
    from pathdex.storage.run_folder import is_stream, unpublished

    if is_stream(folder) and not is_live_folder(folder):
        raise unpublished(folder)
