"""Items of answers as tables and JSON, with their titles and details if the model has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pathdex.tables import TextTable

if TYPE_CHECKING:
    from pathdex.data.item_details import ItemDetails
    from pathdex.data.vocabulary import Id
    from pathdex.recommenders.item_list import ScoredItem

SHOWN_DETAILS = 3
"""Details that a table shows; a terminal drops those that do not fit, and JSON has all."""


def answer_table(title: str, items: Sequence[ScoredItem]) -> TextTable:
    """Rank, id, title, score and some details."""
    has_titles = any(one.title is not None for one in items)
    names = list(dict.fromkeys(name for one in items for name in one.details))[:SHOWN_DETAILS]
    head = ["rank", "item", *(["title"] if has_titles else []), "score", *names]
    rows = [
        [
            str(rank),
            str(one.id),
            *([one.title or ""] if has_titles else []),
            f"{one.score:.4f}",
            *(_text(one.details.get(name)) for name in names),
        ]
        for rank, one in enumerate(items, start=1)
    ]
    return TextTable(title, head, rows, text_columns=3 if has_titles else 2, optional=len(names))


def answer_json(items: Sequence[ScoredItem]) -> list[dict[str, Any]]:
    """The same as JSON, without titles and details that are missing."""
    found = []
    for one in items:
        shown: dict[str, Any] = {"id": one.id, "score": one.score}
        if one.title is not None:
            shown["title"] = one.title
        found.append({**shown, "details": one.details} if one.details else shown)
    return found


def label(details: ItemDetails | None, item: Id) -> str:
    """An id, with its title if there is one."""
    return str(item) if details is None else details.label(item)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return "|".join(map(str, value)) if isinstance(value, list) else str(value)
