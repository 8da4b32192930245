"""`pathdex explain` and `pathdex why-not`."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from typer import Argument, Option

from pathdex.cli.command import RunPath, split_list, write_result
from pathdex.cli.console import out
from pathdex.cli.options import JsonFile

Item = Annotated[str, Argument(help="The item id to explain.", metavar="ITEM")]
History = Annotated[str | None, Option(help="Item ids, oldest first: a,b,c. [default: a new user]")]
Beam = Annotated[int | None, Option(help="Number of paths to follow. [default: the model's beam_size]")]


def explain(
    folder: RunPath, item: Item, history: History = None, beam: Beam = None, json_file: JsonFile = None
) -> None:
    """Show the paths that lead from a history to an item, how likely each is, and how the item scores.

    Examples:

        pathdex explain runs/first 1210 --history 260,1196
    """
    from pathdex.recommenders.capabilities import CanExplain, require
    from pathdex.recommenders.registry import load

    model = require(load(folder), CanExplain)
    found = model.explain(split_list(history, "--history"), item, beam=beam)
    out().print(str(found))
    write_result(json_file, dataclasses.asdict(found))


def why_not(
    folder: RunPath,
    item: Item,
    history: History = None,
    n: Annotated[int, Option("--n", help="Items that were recommended.")] = 10,
    beam: Beam = None,
    keep_seen: Annotated[bool, Option("--keep-seen", help="Items of the history could be recommended.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Show what keeps an item out of the recommendations: the layer that lost it, or the score that it lacks.

    Examples:

        pathdex why-not runs/first 1210 --history 260,1196 --n 5
    """
    from pathdex.recommenders.capabilities import CanExplain, require
    from pathdex.recommenders.registry import load

    model = require(load(folder), CanExplain)
    found = model.why_not(split_list(history, "--history"), item, n=n, beam=beam, exclude_seen=not keep_seen)
    out().print(str(found))
    write_result(json_file, dataclasses.asdict(found))
