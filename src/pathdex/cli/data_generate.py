"""`pathdex data generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathdex.cli.console import out
from pathdex.cli.progress import show_progress


def generate(
    target: Annotated[Path, typer.Argument(help="The Parquet file to write.", metavar="OUT")],
    users: Annotated[int, typer.Option(help="Number of users.")] = 3_000,
    items: Annotated[int, typer.Option(help="Number of items.")] = 2_000,
    interactions: Annotated[int, typer.Option(help="Number of interactions.")] = 120_000,
    depth: Annotated[int, typer.Option(help="Layers of the planted paths.")] = 3,
    nodes: Annotated[int | None, typer.Option(help="Nodes per layer. [default: about 8 items per path]")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
) -> None:
    """Generate interactions with a known structure: items are on one or two planted paths, and users follow paths.

    Rows are streamed to Parquet, so only the disk limits the size. The planted paths are written to a second file.

    Examples:

        pathdex data generate planted.parquet

        pathdex data generate books.parquet --users 294739 --items 1477922 --interactions 8654619
    """
    from pathdex.data import generate as generate_file
    from pathdex.data import truth_file

    with show_progress("generating rows") as progress:
        generate_file(
            target,
            users=users,
            items=items,
            interactions=interactions,
            depth=depth,
            nodes=nodes,
            seed=seed,
            overwrite=overwrite,
            progress=progress,
        )
    console = out()
    console.print(f"{target}: {interactions:,} interactions of {users:,} users with {items:,} items")
    console.print(f"{truth_file(target)}: the planted paths")
