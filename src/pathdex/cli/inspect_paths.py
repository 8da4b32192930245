"""What `pathdex inspect --path`, `--item` and `--plot` show of paths: items, labels, sizes and neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pathdex.cli.answers import label
from pathdex.errors import QueryError
from pathdex.system import MESSAGES
from pathdex.tables import TextTable

if TYPE_CHECKING:
    from pathdex.data.vocabulary import Id
    from pathdex.explorer.explorer import Explorer
    from pathdex.recommenders.capabilities import HasIndex

SHOWN_ITEMS = 10
"""Items of a path in a table; JSON has all."""
NEAR_PATHS = 6
"""Neighbouring paths in a table."""
FIRST_ITEMS = 3
"""Items of a path in the plot and in the table of neighbours."""


def explorer_of(model: HasIndex) -> Explorer | None:
    """The explorer of a model; None without msgspec, which it needs."""
    if not MESSAGES.available:
        return None
    from pathdex.explorer.explorer import Explorer

    return Explorer(model, "")


def paths_table(title: str, model: HasIndex, paths: Sequence[tuple[int, ...]], item: Id | None = None) -> TextTable:
    """Some paths with a label and the first items on each, the most similar or the most popular ones."""
    explorer = explorer_of(model)
    rows = []
    for nodes in paths:
        items = model.path_items(nodes)
        shown = _first(explorer, model, nodes, items, item)
        more = [f"and {len(items) - len(shown)} more"] if len(items) > len(shown) else []
        name = explorer.label(nodes) if explorer is not None and items else None
        text = "; ".join([*(label(model.details, one) for one in shown), *more])
        rows.append(["-".join(map(str, nodes)), "" if name is None else name.text, text, str(len(items))])
    return TextTable(title, ["path", "label", "items", "number"], rows, text_columns=3)


def _first(
    explorer: Explorer | None, model: HasIndex, nodes: Sequence[int], items: Sequence[Id], item: Id | None
) -> list[Id]:
    if explorer is None:
        return list(items[:SHOWN_ITEMS])
    codes = explorer.most_popular(model.items.codes(items), SHOWN_ITEMS)
    first = model.items.ids(codes)
    if item is None or item in first:
        return first
    return [item, *first[:-1]]


def near_table(model: HasIndex, nodes: tuple[int, ...]) -> TextTable | None:
    """Paths that share a prefix with a path; None without msgspec, or if there is none."""
    explorer = explorer_of(model)
    if explorer is None:
        return None
    from pathdex.explorer.path_card import near_paths

    found = near_paths(explorer, nodes)[:NEAR_PATHS]
    if not found:
        return None
    rows = []
    for one in found:
        codes = explorer.most_popular(model.items.codes(model.path_items(one.path)), FIRST_ITEMS)
        items = "; ".join(label(model.details, item) for item in model.items.ids(codes))
        name = "" if one.label is None else one.label.text
        rows.append(["-".join(map(str, one.path)), name, items, str(one.items)])
    return TextTable("\nNeighbouring paths", ["path", "label", "items", "number"], rows, text_columns=3)


def paths_json(model: HasIndex, nodes: Sequence[int]) -> dict[str, Any]:
    """A path and all items on it."""
    details, items = model.details, model.path_items(nodes)
    titles = {} if details is None else {"titles": [details.title(one) for one in items]}
    return {"path": list(nodes), "items": list(items), **titles}


def parse_nodes(path: str) -> tuple[int, ...]:
    """Nodes written as 3-17-5 or 3,17,5."""
    parts = path.replace(",", "-").split("-")
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise QueryError("must be one node per layer", argument="--path", value=path, remedy="write it as 3-17-5")
    return tuple(map(int, parts))


def plot_model(model: HasIndex, steps: Sequence[dict[str, Any]], file: Path) -> None:
    """Draw the index of a model with the items on its largest paths."""
    from pathdex.evaluation.plots import SHOWN_PATHS, ShownPath, plot_index

    explorer = explorer_of(model)
    if explorer is None:
        plot_index(model.health(), steps, file)
        return
    facts = explorer.facts
    largest = [
        ShownPath(
            one.path,
            one.items,
            None if one.label is None else one.label.text,
            [item.title or str(item.id) for item in one.first[:FIRST_ITEMS]],
        )
        for one in explorer.summaries(facts.by_size[:SHOWN_PATHS])
    ]
    plot_index(model.health(), steps, file, largest=largest, loads=[load.items for load in facts.loads])
