"""Answers: lists of scored items that know their titles and become frames."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import polars as pl

from pathdex.data.vocabulary import Id
from pathdex.errors import ConfigError, Problem

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("query", "user", "rank", "item", "score")
"""Columns of frames and files that a detail of the same name must not hide."""


class ScoredItem(NamedTuple):
    """A recommended item. Scores order the items of one answer and are not comparable across answers, unless the
    estimator says so."""

    id: Id
    score: float

    @property
    def title(self) -> str | None:
        """Its title, if the model was fitted with `items=`."""
        return None

    @property
    def details(self) -> dict[str, Any]:
        """Its other columns, if the model was fitted with `items=`."""
        return {}


class DetailSource(Protocol):
    """Looks up details by id."""

    def title(self, item: Id) -> str | None:
        """The title of an item."""

    def details(self, item: Id) -> dict[str, Any]:
        """Its other columns."""


class DescribedItem(ScoredItem):
    """A scored item of a model with details; they are looked up when they are used."""

    source: DetailSource

    @classmethod
    def make(cls, id: Id, score: float, source: DetailSource) -> DescribedItem:
        item = cls(id, score)
        item.source = source
        return item

    @property
    def title(self) -> str | None:
        return self.source.title(self.id)

    @property
    def details(self) -> dict[str, Any]:
        return self.source.details(self.id)

    def __repr__(self) -> str:
        title = "" if self.title is None else f", title={self.title!r}"
        return f"ScoredItem(id={self.id!r}, score={self.score!r}{title})"


class ItemList(list[ScoredItem]):
    """The items of one answer, best first. It is a list."""

    def to_frame(self, library: str = "polars") -> Any:
        """Columns `rank`, `item`, `score` and, with details, `title` and the others; a polars or pandas frame."""
        return as_library(_frame([self]).drop("query"), library)

    def _repr_html_(self) -> str:
        return html_table(_frame([self]).drop("query"))


class ItemLists(list[ItemList]):
    """The answers to several histories, in their order. It is a list."""

    def to_frame(self, library: str = "polars") -> Any:
        """The frames of all answers below each other; the column `query` numbers the histories from 0."""
        return as_library(_frame(self), library)

    def _repr_html_(self) -> str:
        return html_table(_frame(self))


class GivenDetails:
    """Details that came with the items, as from a server."""

    def __init__(self, titles: Mapping[Id, str | None], details: Mapping[Id, dict[str, Any]]) -> None:
        self._titles, self._details = titles, details

    def title(self, item: Id) -> str | None:
        return self._titles.get(item)

    def details(self, item: Id) -> dict[str, Any]:
        return self._details.get(item, {})


def detail_name(name: str) -> str:
    """The name of a detail in a frame beside `KEYS` and `title`."""
    return f"item_{name}" if name in (*KEYS, "title") else name


def html_table(frame: pl.DataFrame) -> str:
    """A frame as an HTML table for notebooks."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in frame.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_cell(value))}</td>" for value in row) + "</tr>" for row in frame.rows()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _frame(answers: Sequence[Iterable[ScoredItem]]) -> pl.DataFrame:
    rows = [(number, rank, item) for number, answer in enumerate(answers) for rank, item in enumerate(answer, start=1)]
    items = [item for *_, item in rows]
    columns = {
        "query": pl.Series([number for number, *_ in rows], dtype=pl.Int64),
        "rank": pl.Series([rank for _, rank, _ in rows], dtype=pl.Int64),
        "item": pl.Series([item.id for item in items]),
        "score": pl.Series([item.score for item in items], dtype=pl.Float64),
    }
    titles, details = [item.title for item in items], [item.details for item in items]
    if any(title is not None for title in titles):
        columns["title"] = pl.Series(titles, dtype=pl.String)
    for name in dict.fromkeys(name for one in details for name in one):
        columns[detail_name(name)] = pl.Series([one.get(name) for one in details], strict=False)
    return pl.DataFrame(columns)


def as_library(frame: pl.DataFrame, library: str) -> pl.DataFrame | pd.DataFrame:
    """The frame, or the same as one of pandas."""
    if library == "polars":
        return frame
    if library != "pandas":
        raise ConfigError([Problem("must be 'polars' or 'pandas'", "library", library)])
    try:
        return frame.to_pandas()
    except ImportError as error:
        missing = Problem("is not installed", "library", library, "install it with: pip install pandas")
        raise ConfigError([missing]) from error
