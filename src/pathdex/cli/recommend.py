"""`pathdex recommend`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from pathdex.cli.command import RunPath, split_list
from pathdex.cli.console import out
from pathdex.cli.options import takes_columns
from pathdex.cli.progress import show_progress
from pathdex.errors import QueryError
from pathdex.tables import TextTable

if TYPE_CHECKING:
    from pathdex.recommenders.base import Recommender

BATCH = "Many users"
_RANGE = re.compile(r"(?P<min>-?[0-9][0-9.eE+-]*?)?\.\.(?P<max>-?[0-9][0-9.eE+-]*)?")


@takes_columns
def recommend(
    folder: RunPath,
    reading: dict[str, Any],
    history: Annotated[str | None, Option(help="Item ids, oldest first: a,b,c")] = None,
    n: Annotated[int, Option("--n", help="Items to recommend.")] = 10,
    beam: Annotated[int | None, Option(help="Number of paths to follow. [default: the model's beam_size]")] = None,
    candidates: Annotated[int | None, Option(help="Maximum number of items to score, instead of --beam.")] = None,
    deny: Annotated[str | None, Option(help="Item ids to leave out: a,b,c")] = None,
    allow: Annotated[str | None, Option(help="Recommend only these item ids: a,b,c")] = None,
    keep_seen: Annotated[bool, Option("--keep-seen", help="Also recommend items of the history.")] = False,
    catalogue: Annotated[Path | None, Option(help="Table with one row per item, for --where.", metavar="FILE")] = None,
    catalogue_item: Annotated[
        str | None, Option(help="Item column of the table; found by name.", metavar="NAME")
    ] = None,
    where: Annotated[
        list[str] | None, Option(help="Condition on a column: 'shelf=a|b' or 'price=5..20'. Repeatable.")
    ] = None,
    explain: Annotated[bool, Option("--explain", help="Show the paths that found each item.")] = False,
    source: Annotated[
        Path | None,
        Option("--input", help="A file with the interactions of many users.", metavar="FILE", rich_help_panel=BATCH),
    ] = None,
    target: Annotated[
        Path | None,
        Option("--output", help="Recommendations: .parquet, .csv or .jsonl.", metavar="FILE", rich_help_panel=BATCH),
    ] = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace the output file.", rich_help_panel=BATCH)] = False,
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
        raise QueryError("--explain works with --history only", remedy="leave it out")
    if (catalogue is None) != (not where):
        raise QueryError("pass --catalogue and --where together, or neither")
    query: dict[str, Any] = {
        "n": n,
        "exclude_seen": not keep_seen,
        "deny": split_list(deny, "--deny"),
        "allow": None if allow is None else split_list(allow, "--allow"),
        "where": conditions(where) if where else None,
        **{name: value for name, value in (("beam", beam), ("candidates", candidates)) if value is not None},
    }
    if target is not None:
        check_target(target, overwrite=overwrite)
    model = load(folder)
    if catalogue is not None:
        model.attach(Attributes.read(catalogue, item=catalogue_item))
    if source is not None and target is not None:
        _many(model, source, target, reading, overwrite=overwrite, query=query)
    else:
        _one(model, split_list(history, "--history"), explain=explain, query=query)


def conditions(texts: Sequence[str]) -> dict[str, Any]:
    """`where` from `column=value`, `column=one|other`, or `column=low..high` with one end optional."""
    where: dict[str, Any] = {}
    for text in texts:
        column, sign, wanted = (part.strip() for part in text.partition("="))
        values = [value for value in (value.strip() for value in wanted.split("|")) if value]
        if not column or not sign or not values:
            raise QueryError(
                "must be COLUMN=VALUE", argument="--where", value=text, remedy="write 'shelf=a|b' or 'price=5..20'"
            )
        if column in where:
            rule = f"{column!r} is given twice"
            raise QueryError(rule, argument="--where", value=text, remedy=f"write all its values as '{column}=a|b'")
        span = _RANGE.fullmatch(wanted)
        if span is not None and wanted != "..":
            where[column] = {name: bound for name, bound in span.groupdict().items() if bound}
        else:
            where[column] = values
    return where


def _one(model: Recommender, history: list[str], *, explain: bool, query: dict[str, Any]) -> None:
    from pathdex.recommenders.capabilities import CanExplain, require

    console = out()
    found = model.recommend(history, **query)
    rows = [[str(rank), str(one.id), f"{one.score:.4f}"] for rank, one in enumerate(found, start=1)]
    console.print(TextTable(f"For {', '.join(history)}", ["rank", "item", "score"], rows, text_columns=2))
    if explain:
        for one in found:
            console.print(str(require(model, CanExplain).explain(history, one.id, beam=query.get("beam"))))


def _many(
    model: Recommender, source: Path, target: Path, reading: dict[str, Any], *, overwrite: bool, query: dict[str, Any]
) -> None:
    from pathdex.data import read
    from pathdex.recommenders.batch import recommend_file

    with show_progress("recommending") as progress:
        summary = recommend_file(
            model, read(source, **reading), target, overwrite=overwrite, progress=progress, **query
        )
    console = out()
    console.print(f"{target}: {summary.rows:,} recommendations for {summary.users:,} users")
    if summary.unknown_items:
        console.print(f"{summary.unknown_items:,} history items are not in the catalogue and were left out")
    if summary.skipped:
        console.print(f"{summary.skipped:,} users were skipped: none of their items is in the catalogue")
