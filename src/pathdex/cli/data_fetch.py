"""`pathdex data fetch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathdex.cli.console import counting, out


def fetch(
    name: Annotated[str, typer.Argument(help="movielens-1m, movielens-20m, movielens-25m or amazon-books.")],
    folder: Annotated[Path, typer.Option(help="Where to put it.")] = Path("data"),
    file: Annotated[Path | None, typer.Option(help="A copy already on disk: verified and used, no download.")] = None,
) -> None:
    """Download a public data set, verify its checksum, and say how to train on it. An interrupted download goes on.

    Examples:

        pathdex data fetch movielens-1m

        pathdex data fetch movielens-20m --folder /data --file ~/Downloads/ml-20m.zip
    """
    from pathdex.data import fetch as fetch_file
    from pathdex.data import find_dataset

    source = find_dataset(name)
    with counting(f"fetching {source.filename}") as progress:
        target = fetch_file(name, folder, file=file, progress=progress)
    flags = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in source.reading.items())
    console = out()
    console.print(f"{target}  (verified)")
    console.print(f"Terms: {source.terms}")
    console.print(
        f"Train on it as in the papers: pathdex train {target} --out runs/{name} {flags} "
        f"--valid-users {source.valid_users} --test-users {source.test_users}"
    )
