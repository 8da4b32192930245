"""Labels of paths from the metadata of their items: class-based TF-IDF, with a path as the class.

The score of a term is its share of the path's items times log(1 + 1 / its share of the catalogue): words of titles and
values of attributes that are frequent here and rare elsewhere. Shares in the catalogue are those of a sample. A term
that is hardly more frequent here than anywhere says nothing and is left out.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from pathdex.data.detail_columns import DetailColumn
from pathdex.data.vocabulary import UNKNOWN
from pathdex.explorer.catalogue import Catalogue
from pathdex.explorer.schemas import LabelTerm, PathLabel
from pathdex.kernels.types import Ints

BACKGROUND = 20_000
"""Items of the catalogue that shares are estimated on."""
ITEMS_KEPT = 50_000
"""Items whose terms are remembered."""
TERMS = 3
"""Terms of a label."""
SUPPORT = 2
"""Items that must have a term, unless the path has one item."""
LEAST_SHARE = 0.1
"""The share of a path's items that must have a term."""
LIFT = 1.5
"""How many times more frequent than in the catalogue a term must be."""
LONG_TEXT = 60
"""A column of longer texts is read as words, like a title, and not as values."""
TITLE = "title"
_WORD = re.compile(r"[^\W\d_][\w'’-]*", re.UNICODE)
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and are at be by das de der des die du el en et for from he her his i ii iii il in is it its iv la las "
        "le les los me my not of on or our part she that the they this to und vol volume von we with you your",
    )
)
"""Words that say nothing about an item, in catalogues of any kind."""

Term = tuple[str, str]
"""A column and a normalised term."""


def normalize(text: str) -> str:
    """Lower case, without diacritics."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.lower())
    return "".join(one for one in plain if not unicodedata.combining(one))


class LabelMaker:
    """Makes labels from a sample of the catalogue as the background."""

    def __init__(self, catalogue: Catalogue, sample: Ints) -> None:
        """`sample` are codes of items drawn at random."""
        self.catalogue = catalogue
        rows = [row for row in catalogue.rows(catalogue.ids(sample)) if row != UNKNOWN]
        columns = [] if catalogue.info is None else catalogue.info.detail_columns
        self._values = [one for one in columns if one.kind in ("text", "boolean") and not _is_long(one, rows)]
        self._separators = {one.name: _separator(one, rows) for one in self._values}
        self._texts = [one for one in columns if one.kind == "text" and _is_long(one, rows)]
        self._shown: dict[Term, str] = {}
        self._kept: dict[int, frozenset[Term]] = {}
        counts: Counter[Term] = Counter()
        for row in rows:
            counts.update(self._terms(row))
        self._counts, self._size = counts, max(1, len(rows))

    @property
    def is_silent(self) -> bool:
        """Whether there is nothing to make labels from."""
        return self.catalogue.info is None

    def share(self, column: str, term: str) -> float:
        """The share of the catalogue that has a term."""
        return self._counts[column, normalize(term)] / self._size

    def _terms(self, row: int) -> frozenset[Term]:
        """The terms of an item; those of the last items are remembered, since an item is on several paths."""
        found = self._kept.get(row)
        if found is None:
            found = frozenset(self._find_terms(row))
            if len(self._kept) >= ITEMS_KEPT:
                self._kept = {}
            self._kept[row] = found
        return found

    def _find_terms(self, row: int) -> set[Term]:
        found: set[Term] = set()
        shown = self._shown
        texts = [(TITLE, self.catalogue.title_at(row) or "")]
        texts += [(one.name, str(one.value(row) or "")) for one in self._texts]
        for column, text in texts:
            for word in _WORD.findall(text):
                plain = normalize(word)
                if len(plain) > 1 and plain not in _COMMON:
                    term = (column, plain)
                    found.add(term)
                    if term not in shown:
                        shown[term] = word
        for one in self._values:
            value = one.value(row)
            separator = self._separators[one.name]
            if separator is not None and isinstance(value, str):
                value = value.split(separator)
            for each in value if isinstance(value, list) else [value]:
                text = _value_text(one, each)
                if text:
                    term = (one.name, normalize(text))
                    found.add(term)
                    if term not in shown:
                        shown[term] = text
        return found

    def label(self, codes: Ints | Sequence[int]) -> PathLabel | None:
        """A label for items; None if they have no metadata, or nothing in common that is rare elsewhere."""
        if self.is_silent:
            return None
        rows = [row for row in self.catalogue.rows(self.catalogue.ids(codes)) if row != UNKNOWN]
        counts: Counter[Term] = Counter()
        for row in rows:
            counts.update(self._terms(row))
        least = min(max(SUPPORT, LEAST_SHARE * len(rows)), len(rows))
        scored = [
            LabelTerm(self._shown[column, term], column, count, count / len(rows) * self._rarity((column, term)))
            for (column, term), count in counts.items()
            if count >= least and count / len(rows) >= LIFT * self._counts[column, term] / self._size
        ]
        scored.sort(key=lambda one: (-one.score, one.column, one.term))
        chosen = _distinct(scored)[:TERMS]
        if not chosen:
            return None
        return PathLabel(" · ".join(one.term for one in chosen), chosen, len(rows))

    def _rarity(self, term: Term) -> float:
        return math.log(1 + self._size / (1 + self._counts[term]))

    def shared_values(self, codes: Ints, most: int = 12) -> list[tuple[str, str, int, int, float]]:
        """Attribute values in common: column, value, items, sample and the share of the catalogue, best first."""
        rows = [row for row in self.catalogue.rows(self.catalogue.ids(codes)) if row != UNKNOWN]
        counts: Counter[Term] = Counter()
        for row in rows:
            counts.update(term for term in self._terms(row) if any(term[0] == one.name for one in self._values))
        found = [
            (column, self._shown[column, term], count, len(rows), self._counts[column, term] / self._size)
            for (column, term), count in counts.items()
            if count >= min(SUPPORT, len(rows))
        ]
        found.sort(key=lambda one: (-one[2] / one[3] * math.log(1 + 1 / (one[4] + 1 / self._size)), one[0], one[1]))
        return found[:most]


def background(num_items: int, removed: Ints) -> Ints:
    """Codes of a sample of the catalogue, always the same for the same catalogue."""
    drawn = np.random.default_rng(0).choice(num_items, min(BACKGROUND, num_items), replace=False)
    return np.setdiff1d(drawn, removed)


def _value_text(column: DetailColumn, value: Any) -> str:
    if column.kind == "boolean":
        return column.name if value else ""
    return "" if value is None else str(value).strip()


def _separator(column: DetailColumn, rows: Sequence[int]) -> str | None:
    """What separates several values in the cells of a text column: | or ; if some have it."""
    if column.kind != "text" or column.many:
        return None
    values = [column.value(row) for row in rows[:500]]
    return next((one for one in "|;" if any(isinstance(text, str) and one in text for text in values)), None)


def _is_long(column: DetailColumn, rows: Sequence[int]) -> bool:
    if column.kind != "text" or column.many:
        return False
    values = [str(one) for one in (column.value(row) for row in rows[:500]) if one]
    return bool(values) and sum(map(len, values)) / len(values) > LONG_TEXT


def _distinct(terms: Sequence[LabelTerm]) -> list[LabelTerm]:
    """The terms without those that repeat another, such as a word of the title that is also the category."""
    kept: list[LabelTerm] = []
    for one in terms:
        plain = normalize(one.term)
        if not any(plain in normalize(other.term) or normalize(other.term) in plain for other in kept):
            kept.append(one)
    return kept
