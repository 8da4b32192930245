"""`pathdex recommend`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathdex.cli.command import RunPath, words
from pathdex.cli.console import counting, out, table
from pathdex.cli.reading import takes_columns
from pathdex.errors import QueryError

if TYPE_CHECKING:
    from pathdex.retrieval.contract import Recommender

BATCH = "Many users"


@takes_columns
def recommend(
    folder: RunPath,
    reading: dict[str, Any],
    history: Annotated[str | None, typer.Option(help="Item ids, oldest first: a,b,c")] = None,
    n: Annotated[int, typer.Option("--n", help="Items to recommend.")] = 10,
    beam: Annotated[int | None, typer.Option(help="Paths to follow. [default: the model's]")] = None,
    candidates: Annotated[int | None, typer.Option(help="In place of a beam: the most items to score.")] = None,
    deny: Annotated[str | None, typer.Option(help="Item ids never to recommend: a,b,c")] = None,
    allow: Annotated[str | None, typer.Option(help="The only item ids to recommend: a,b,c")] = None,
    keep_seen: Annotated[bool, typer.Option("--keep-seen", help="Also recommend items of the history.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show the paths that found each item.")] = False,
    source: Annotated[
        Path | None,
        typer.Option("--input", help="Interactions of many users.", metavar="FILE", rich_help_panel=BATCH),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="Where to write user, rank, item, score: .parquet, .csv or .jsonl.",
            metavar="FILE",
            rich_help_panel=BATCH,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output if it is there.", rich_help_panel=BATCH)
    ] = False,
) -> None:
    """Recommend items for one history, or for every user of a file.

    Examples:

        pathdex recommend runs/first --history 260,1196 --n 5 --explain

        pathdex recommend runs/first --input users.parquet --output recommendations.parquet --candidates 100
    """
    from pathdex.estimators import load

    if (history is None) == (source is None) or (source is None) != (target is None):
        raise QueryError("pass either --history, or both --input and --output")
    if explain and history is None:
        raise QueryError("--explain is for one history; leave it out with --input")
    asked: dict[str, Any] = {
        "n": n,
        "exclude_seen": not keep_seen,
        "deny": words(deny, "--deny"),
        "allow": None if allow is None else words(allow, "--allow"),
        **{name: value for name, value in (("beam", beam), ("candidates", candidates)) if value is not None},
    }
    if source is not None and target is not None:
        _many(folder, source, target, reading, overwrite=overwrite, asked=asked)
    else:
        _one(load(folder), words(history, "--history"), explain=explain, asked=asked)


def _one(model: Recommender, history: list[str], *, explain: bool, asked: dict[str, Any]) -> None:
    from pathdex.retrieval.recommender import with_index

    console = out()
    found = model.recommend(history, **asked)
    rows = [[str(rank), str(one.id), f"{one.score:.4f}"] for rank, one in enumerate(found, start=1)]
    console.print(table(f"For {', '.join(history)}", ["rank", "item", "score"], rows, left=2))
    if explain:
        for one in found:
            console.print(str(with_index(model).explain(history, one.id, beam=asked.get("beam"))))


def _many(
    folder: Path, source: Path, target: Path, reading: dict[str, Any], *, overwrite: bool, asked: dict[str, Any]
) -> None:
    from pathdex.data import read
    from pathdex.estimators import load
    from pathdex.retrieval.batch import check_target, recommend_file

    check_target(target, overwrite=overwrite)
    model = load(folder)
    with counting("recommending") as progress:
        summary = recommend_file(
            model, read(source, **reading), target, overwrite=overwrite, progress=progress, **asked
        )
    console = out()
    console.print(f"{target}: {summary.rows:,} recommendations for {summary.users:,} users")
    if summary.unknown_items:
        console.print(f"{summary.unknown_items:,} items of the histories are not in the catalogue and were left out")
    if summary.skipped:
        console.print(f"{summary.skipped:,} users were skipped: none of their items is in the catalogue")
