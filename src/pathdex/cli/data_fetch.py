"""`pathdex data fetch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathdex.cli.console import out
from pathdex.cli.progress import show_progress


def fetch(
    name: Annotated[str, typer.Argument(help="movielens-1m, movielens-20m, movielens-25m or amazon-books.")],
    folder: Annotated[Path, typer.Option(help="Folder to store it in.")] = Path("data"),
    file: Annotated[
        Path | None, typer.Option(help="Use a copy on disk instead of downloading; it is verified too.")
    ] = None,
) -> None:
    """Download a public data set, verify its checksum, and print the command to train on it.

    Re-run the command to resume an interrupted download.

    Examples:

        pathdex data fetch movielens-1m

        pathdex data fetch movielens-20m --folder /data --file ~/Downloads/ml-20m.zip
    """
    from pathdex.data import fetch as fetch_file
    from pathdex.data import find_dataset

    source = find_dataset(name)
    with show_progress(f"fetching {source.filename}") as progress:
        target = fetch_file(name, folder, file=file, progress=progress)
    flags = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in source.reading.items())
    console = out()
    console.print(f"{target}  (verified)")
    console.print(f"Terms: {source.terms}")
    console.print(
        f"Train with the papers' protocol: pathdex train {target} --out runs/{name} {flags} "
        f"--valid-users {source.valid_users} --test-users {source.test_users}"
    )
