"""`pathdex verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pathdex.cli.command import write_result
from pathdex.cli.console import err, out
from pathdex.cli.options import JsonFile


def verify(
    model: Annotated[
        Path,
        typer.Argument(
            help="A bundle, a run folder, a live folder, a stream or a folder of shards.", show_default=False
        ),
    ],
    json_file: JsonFile = None,
) -> None:
    """Check everything about a saved model: manifest, sizes, checksums, the content of all arrays, chains of deltas.

    Of a stream, also its state: the chain of checkpoints, and the histories of users, which must not be ahead of it.
    Of a folder of shards, also whether they are all those of one model.
    Lists what was checked, or all problems; the exit code is 1 if there are any.

    Examples:

        pathdex verify movies.pathdex

        pathdex verify live/ --json -
    """
    from pathdex.recommenders.verification import verify_model
    from pathdex.storage.live_folder import is_live_folder
    from pathdex.storage.run_folder import STREAM_REQUEST

    parts: list[str] = []
    problems = verify_model(model, parts.append)
    write_result(json_file, {"model": str(model), "parts": parts, "problems": [str(one) for one in problems]})
    if problems:
        console = err(always=True)
        for problem in problems:
            console.print(f"- {problem}", markup=False, highlight=False, soft_wrap=True)
        console.print(f"{model}: {len(problems)} problem{'s' if len(problems) > 1 else ''}", soft_wrap=True)
        raise typer.Exit(1)
    checked = f"{len(parts)} parts" if len(parts) > 1 else "everything"
    console = out()
    console.print(f"{model}: no problems, {checked} checked", soft_wrap=True)
    deltas = [one for one in parts if one.startswith("delta ")]
    listed = [one for one in parts if one not in deltas]
    if deltas:
        listed.append(f"{len(deltas):,} delta{'s' if len(deltas) > 1 else ''}")
    for part in listed if len(parts) > 1 else []:
        console.print(f"- {part}", markup=False, highlight=False, soft_wrap=True)
    if (model / STREAM_REQUEST).exists() and not is_live_folder(model):
        console.print("The stream has not published a model yet.")
