"""Titles and other details of many items at once, by code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pathdex.data.item_details import ItemDetails
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.explorer.schemas import NamedItem
from pathdex.kernels.types import Ints

LONGEST_TEXT = 300
"""Characters of a title or a detail that are shown."""
MOST_VALUES = 30
"""Elements of a list that are shown."""


class Catalogue:
    """Looks up ids, titles and details of items by code."""

    def __init__(self, items: Vocabulary, details: ItemDetails | None) -> None:
        self.items, self.info = items, details
        self._titles = (
            next((one for one in details.columns if one.name == details.title_column), None) if details else None
        )

    def ids(self, codes: Ints | Sequence[int]) -> list[Id]:
        return self.items.ids(np.asarray(codes, np.int64))

    def rows(self, ids: Sequence[Id]) -> list[int]:
        """The rows of items in the table of details; -1 for those without one."""
        if self.info is None or not ids:
            return [UNKNOWN] * len(ids)
        found: list[int] = self.info.ids.codes(list(ids)).tolist()
        return found

    def title_at(self, row: int) -> str | None:
        """The title in a row of the table; None if it has none, or one without a visible character."""
        value = None if self._titles is None or row == UNKNOWN else self._titles.value(row)
        text = ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
        return _text(text) if any(one.isprintable() and not one.isspace() for one in text) else None

    def details_at(self, row: int) -> dict[str, Any] | None:
        """The other columns in a row; None if it has none."""
        if self.info is None or row == UNKNOWN:
            return None
        values = {one.name: _shown(one.value(row)) for one in self.info.detail_columns}
        return {name: value for name, value in values.items() if value is not None} or None

    def titles(self, ids: Sequence[Id]) -> list[str | None]:
        return [self.title_at(row) for row in self.rows(ids)]

    def named(self, codes: Ints | Sequence[int]) -> list[NamedItem]:
        """Items with their titles."""
        ids = self.ids(codes)
        return [NamedItem(id, title) for id, title in zip(ids, self.titles(ids), strict=True)]

    def described(self, codes: Ints | Sequence[int]) -> list[tuple[Id, str | None, dict[str, Any] | None]]:
        """Ids, titles and other details of items."""
        ids = self.ids(codes)
        return [(id, self.title_at(row), self.details_at(row)) for id, row in zip(ids, self.rows(ids), strict=True)]


def _text(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(one) for one in value[:MOST_VALUES] if one is not None] or None
    if isinstance(value, str):
        return _text(value) if value.strip() else None
    return value
