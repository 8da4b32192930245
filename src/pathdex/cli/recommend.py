"""`pathdex recommend`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathdex.cli.command import RunPath, words
from pathdex.cli.console import counting, out, table
from pathdex.cli.reading import takes_columns
from pathdex.errors import QueryError

if TYPE_CHECKING:
    from pathdex.recommenders.base import Recommender

BATCH = "Many users"
_RANGE = re.compile(r"(?P<min>-?[0-9][0-9.eE+-]*?)?\.\.(?P<max>-?[0-9][0-9.eE+-]*)?")


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
    catalogue: Annotated[
        Path | None, typer.Option(help="A table with one row per item, for --where.", metavar="FILE")
    ] = None,
    catalogue_item: Annotated[
        str | None, typer.Option(help="Its column of item ids, if its name is not a common one.", metavar="NAME")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="What items must be, by column: 'shelf=a|b', 'price=5..20'. Repeat for more columns."),
    ] = None,
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

        pathdex recommend runs/first --history 260 --catalogue movies.parquet --where 'genre=war|drama'

        pathdex recommend runs/first --input users.parquet --output recommendations.parquet --candidates 100
    """
    from pathdex.data import Attributes
    from pathdex.recommenders.batch import check_target
    from pathdex.recommenders.registry import load

    if (history is None) == (source is None) or (source is None) != (target is None):
        raise QueryError("pass either --history, or both --input and --output")
    if explain and history is None:
        raise QueryError("--explain is for one history; leave it out with --input")
    if (catalogue is None) != (not where):
        raise QueryError("pass --catalogue and --where together, or neither")
    asked: dict[str, Any] = {
        "n": n,
        "exclude_seen": not keep_seen,
        "deny": words(deny, "--deny"),
        "allow": None if allow is None else words(allow, "--allow"),
        "where": conditions(where) if where else None,
        **{name: value for name, value in (("beam", beam), ("candidates", candidates)) if value is not None},
    }
    if target is not None:
        check_target(target, overwrite=overwrite)
    model = load(folder)
    if catalogue is not None:
        model.attach(Attributes.read(catalogue, item=catalogue_item))
    if source is not None and target is not None:
        _many(model, source, target, reading, overwrite=overwrite, asked=asked)
    else:
        _one(model, words(history, "--history"), explain=explain, asked=asked)


def conditions(texts: Sequence[str]) -> dict[str, Any]:
    """`where` from `column=value`, `column=one|other` and, for numbers, `column=low..high` with one end optional."""
    where: dict[str, Any] = {}
    for text in texts:
        column, sign, wanted = (part.strip() for part in text.partition("="))
        values = [value for value in (value.strip() for value in wanted.split("|")) if value]
        if not column or not sign or not values:
            raise QueryError(f"--where {text!r}: must be COLUMN=VALUE; write it as 'shelf=a|b' or 'price=5..20'")
        if column in where:
            raise QueryError(f"--where {text!r}: {column!r} was given before; write all its values as '{column}=a|b'")
        span = _RANGE.fullmatch(wanted)
        if span is not None and wanted != "..":
            where[column] = {name: bound for name, bound in span.groupdict().items() if bound}
        else:
            where[column] = values
    return where


def _one(model: Recommender, history: list[str], *, explain: bool, asked: dict[str, Any]) -> None:
    from pathdex.recommenders.capabilities import CanExplain, require

    console = out()
    found = model.recommend(history, **asked)
    rows = [[str(rank), str(one.id), f"{one.score:.4f}"] for rank, one in enumerate(found, start=1)]
    console.print(table(f"For {', '.join(history)}", ["rank", "item", "score"], rows, left=2))
    if explain:
        for one in found:
            console.print(str(require(model, CanExplain).explain(history, one.id, beam=asked.get("beam"))))


def _many(
    model: Recommender, source: Path, target: Path, reading: dict[str, Any], *, overwrite: bool, asked: dict[str, Any]
) -> None:
    from pathdex.data import read
    from pathdex.recommenders.batch import recommend_file

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
