"""`pathdex shard`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathdex.cli.command import RunPath, write_result
from pathdex.cli.console import out
from pathdex.cli.options import JsonFile
from pathdex.cli.progress import show_progress


def shard(
    model: RunPath,
    target: Annotated[
        Path, typer.Option("--out", help="The folder for the shards: shard-1, shard-2 ...", show_default=False)
    ],
    shards: Annotated[int, typer.Option(help="The number of shards.", show_default=False)],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a folder of shards that holds nothing else.")
    ] = False,
    json_file: JsonFile = None,
) -> None:
    """Split a Deep Retrieval model by item, for a catalogue that should not fit one host.

    Serve each shard with `pathdex serve`, and all of them with `pathdex serve --shards URL,URL,...`.

    Examples:

        pathdex shard runs/first --shards 4 --out shards

        pathdex serve shards/shard-1 --port 8001
    """
    from pathdex.recommenders.sharding import write_shards

    with show_progress("shards") as progress:
        made = write_shards(model, shards, target, overwrite=overwrite, progress=progress)
    folders = [str(one) for one in made.folders]
    write_result(json_file, {"version": made.version, "folders": folders, "replaced": made.replaced})
    out().print(f"Wrote {len(made.folders)} shards of model {made.version} to {target}")
    if made.replaced not in (None, len(folders)):
        out().print(
            f"The folder held {made.replaced} shards before. Routers of these cannot use the new ones: serve all "
            f"{len(folders)}, and restart such routers with all their URLs"
        )
