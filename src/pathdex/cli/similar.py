"""`pathdex similar`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from pathdex.cli.answers import answer_json, answer_table, label
from pathdex.cli.command import RunPath, write_result
from pathdex.cli.console import out
from pathdex.cli.options import JsonFile


def similar(
    folder: RunPath,
    item: Annotated[str, Argument(help="An item id.", metavar="ITEM")],
    n: Annotated[int, Option("--n", help="Items to show.")] = 10,
    json_file: JsonFile = None,
) -> None:
    """Show the items most similar to an item.

    Examples:

        pathdex similar runs/first 260

        pathdex similar runs/first 260 --n 5 --json -
    """
    from pathdex.recommenders.registry import load

    model = load(folder)
    found = model.similar_items(item, n)
    out().print(answer_table(f"Similar to {label(model.details, item)}", found))
    write_result(json_file, {"item": item, "items": answer_json(found)})
