"""`pathdex recommend`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from pathdex.cli.answers import answer_json, answer_table, label
from pathdex.cli.command import RunPath, split_list, write_result
from pathdex.cli.console import err, out
from pathdex.cli.options import CatalogueLists, JsonFile, declared_lists, takes_reading
from pathdex.cli.progress import show_progress
from pathdex.errors import QueryError
from pathdex.progress import quantity

if TYPE_CHECKING:
    from pathdex.data.interactions import Interactions
    from pathdex.data.reading import Reading
    from pathdex.recommenders.base import Recommender

BATCH = "Many users"
_RANGE = re.compile(r"(?P<min>-?[0-9][0-9.eE+-]*?)?\.\.(?P<max>-?[0-9][0-9.eE+-]*)?")


@takes_reading
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
    catalogue: Annotated[
        Path | None,
        Option(help="Table with one row per item, for --where. [default: the --items of the training]", metavar="FILE"),
    ] = None,
    catalogue_item: Annotated[
        str | None, Option(help="Item column of the table; found by name.", metavar="NAME")
    ] = None,
    lists: CatalogueLists = None,
    where: Annotated[
        list[str] | None, Option(help="Condition on a column: 'shelf=a|b' or 'price=5..20'. Repeatable.")
    ] = None,
    explain: Annotated[bool, Option("--explain", help="Show the paths that found each item.")] = False,
    json_file: JsonFile = None,
    source: Annotated[
        str | None,
        Option("--input", help="A file with the interactions of many users.", metavar="FILE", rich_help_panel=BATCH),
    ] = None,
    target: Annotated[
        Path | None,
        Option("--output", help="Recommendations: .parquet, .csv or .jsonl.", metavar="FILE", rich_help_panel=BATCH),
    ] = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace the output file.", rich_help_panel=BATCH)] = False,
    plain: Annotated[
        bool,
        Option("--plain", help="Read --input without the columns and filters of the training.", rich_help_panel=BATCH),
    ] = False,
) -> None:
    """Recommend items for one history, or for every user of a file.

    The file is read like the training data: the same columns, ratings and separators. Options override this, and
    --plain turns it off. Filters by count (--min-interactions) apply only if given.

    Examples:

        pathdex recommend runs/first --history 260,1196 --n 5 --explain

        pathdex recommend runs/first --history 260 --catalogue movies.parquet --where 'genre=war|drama'

        pathdex recommend runs/first --input users.parquet --output recommendations.parquet --candidates 100
    """
    from pathdex.data import Attributes
    from pathdex.experiments.runs import training_reading
    from pathdex.recommenders.batch import check_target
    from pathdex.recommenders.registry import load

    if (history is None) == (source is None) or (source is None) != (target is None):
        raise QueryError("pass either --history, or both --input and --output")
    if explain and history is None:
        raise QueryError("--explain works with --history only", remedy="leave it out")
    if catalogue is not None and not where:
        raise QueryError("pass --catalogue together with --where, or neither")
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
        model.attach(Attributes.read(catalogue, item=catalogue_item, lists=declared_lists(lists)))
    elif where and model.details is None:
        raise QueryError("--where needs a table of items", remedy="pass --catalogue FILE, or train with --items FILE")
    if source is not None and target is not None:
        data = _read_input(source, reading, None if plain else training_reading(folder, model))
        _many(model, data, target, overwrite=overwrite, query=query, json_file=json_file)
    else:
        _one(model, split_list(history, "--history"), explain=explain, query=query, json_file=json_file)


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


def _one(
    model: Recommender, history: list[str], *, explain: bool, query: dict[str, Any], json_file: Path | None
) -> None:
    from pathdex.recommenders.capabilities import CanExplain, require

    console = out()
    found = model.recommend(history, **query)
    console.print(answer_table(f"For {', '.join(label(model.details, one) for one in history)}", found))
    items = answer_json(found)
    if explain:
        for one, shown in zip(found, items, strict=True):
            explanation = require(model, CanExplain).explain(history, one.id, beam=query.get("beam"))
            console.print(str(explanation))
            shown["explanation"] = dataclasses.asdict(explanation)
    write_result(json_file, {"history": history, "items": items})


def _read_input(source: str, given: dict[str, Any], training: Reading | None) -> Interactions:
    """Read a file like the training data, and say so."""
    from pathdex.data.readers import is_prepared, read_as, read_prepared
    from pathdex.data.reading import Reading
    from pathdex.data.remembered import read_like

    options = Reading(**given)
    if is_prepared(source):
        return read_prepared(source, options)
    if training is not None:
        remembered = read_like(training, source, options)
        options = remembered.reading
        if str(remembered):
            err().print(f"{source}: {remembered} (--plain turns this off)")
    return read_as(source, options)


def _many(
    model: Recommender,
    data: Interactions,
    target: Path,
    *,
    overwrite: bool,
    query: dict[str, Any],
    json_file: Path | None,
) -> None:
    from pathdex.recommenders.batch import recommend_file

    with show_progress("recommending") as progress:
        summary = recommend_file(model, data, target, overwrite=overwrite, progress=progress, **query)
    write_result(json_file, {"output": str(target), **vars(summary)})
    console = out()
    console.print(f"{target}: {summary.rows:,} recommendations for {summary.users:,} users")
    if summary.unknown_items:
        console.print(f"left out {quantity(summary.unknown_items, 'history item')} that the catalogue does not have")
    if summary.skipped:
        console.print(f"skipped {quantity(summary.skipped, 'user')}: none of their items is in the catalogue")
