"""A table with titles and other details of items, which travels with a model. Items are looked up by id.

Ids, not codes, are the key: the items of a live model change while the table stays. An item without a row has no
details, and a row may wait for an item that comes later.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
from numpy.typing import NDArray

from pathdex.data.columns import guess_column
from pathdex.data.detail_columns import DetailColumn, make_detail_column
from pathdex.data.findings import raise_errors
from pathdex.data.formats import open_source
from pathdex.data.rows import check_rows, refuse_repeats
from pathdex.data.source_table import FileOptions, Source, reading
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.errors import DataError, Problem, did_you_mean

if TYPE_CHECKING:
    from pathdex.data.attributes import Attributes

ID_COLUMN = "item"
"""The column of ids in `to_frame`."""


@dataclass(frozen=True, eq=False)
class ItemDetails:
    """Details of items by id: a title, if the table has one, and other columns."""

    ids: Vocabulary
    columns: tuple[DetailColumn, ...]
    title_column: str | None = None
    """The column that names an item to people."""

    @classmethod
    def read(
        cls,
        source: Source,
        *,
        item: str | None = None,
        title: str | None = None,
        columns: Iterable[str] | None = None,
        format: str | None = None,
    ) -> ItemDetails:
        """Read a table with one row per item from any source of `pathdex.read`.

        The columns of ids and titles are found by common names unless named. `columns` chooses the other columns to
        keep, by default all. Dates become text; columns of other types, such as structs, are skipped with a warning.
        """
        table = open_source(source, FileOptions(format))
        with reading(table.name):
            frame = table.frame.collect()
        item = (
            item or guess_column("item", frame.columns) or next((n for n in frame.columns if n.lower() == "id"), None)
        )
        rows = check_rows(replace(table, frame=frame.lazy()), {"item": item})
        raise_errors(rows.findings)
        ids, id_column = rows.frame.collect()["item"], rows.columns["item"]
        refuse_repeats(ids, id_column, table.name)
        if not len(ids):
            raise DataError(Problem(f"{table.name} has no rows", remedy="pass a table with one row per item"))
        others = frame.drop(id_column)
        title = title or guess_column("title", others.columns)
        chosen = _chosen(others.columns, title, columns, table.name)
        made = {name: make_detail_column(others[name], text_file=not table.typed) for name in chosen}
        skipped = [f"{name!r} ({others[name].dtype})" for name, column in made.items() if column is None]
        if skipped:
            warnings.warn(
                f"{table.name}: columns of these types are not kept: {', '.join(skipped)}; cast them to text",
                stacklevel=2,
            )
        kept = tuple(column for column in made.values() if column is not None)
        if not kept:
            rule = f"{table.name} has no column to keep besides {id_column!r}"
            raise DataError(Problem(rule, remedy="add a title or another column"))
        return cls(Vocabulary.from_column(ids), kept, title if any(one.name == title for one in kept) else None)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{column.name}: {column.description}" for column in self.columns)
        return f"ItemDetails({len(self):,} items; title {self.title_column!r}; {kinds})"

    @cached_property
    def _by_name(self) -> dict[str, DetailColumn]:
        return {column.name: column for column in self.columns}

    @property
    def detail_columns(self) -> list[DetailColumn]:
        """The columns besides the title."""
        return [column for column in self.columns if column.name != self.title_column]

    def title(self, item: Id) -> str | None:
        """The title of an item; None if it has none."""
        if self.title_column is None:
            return None
        row = self.ids.code(item)
        value = None if row == UNKNOWN else self._by_name[self.title_column].value(row)
        return None if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    def details(self, item: Id) -> dict[str, Any]:
        """The columns of an item besides its title; those without a value are left out."""
        row = self.ids.code(item)
        if row == UNKNOWN:
            return {}
        values = ((column.name, column.value(row)) for column in self.detail_columns)
        return {name: value for name, value in values if value is not None}

    def label(self, item: Id) -> str:
        """The id with the title, if there is one: `260 (Star Wars)`."""
        title = self.title(item)
        return str(item) if title is None else f"{item} ({title})"

    def to_frame(self) -> pl.DataFrame:
        """All rows, with the ids in the column `item`; a column of that name becomes `item_`."""
        columns = [self.ids.column().alias(ID_COLUMN)]
        columns += [column.series().alias(_frame_name(column.name)) for column in self.columns]
        return pl.DataFrame(columns)

    @classmethod
    def from_frame(cls, frame: pl.DataFrame, title: str | None) -> ItemDetails:
        """What `to_frame` gave; `title` is the `title_column`."""
        return cls.read(frame, item=ID_COLUMN, title=None if title is None else _frame_name(title))

    def attributes(self) -> Attributes:
        """The columns for conditions in `where`."""
        from pathdex.data.attributes import Attributes

        return Attributes.read(self.to_frame(), item=ID_COLUMN)

    def missing(self, items: Vocabulary) -> int:
        """How many of these items have no row."""
        known = self.ids.column()
        ids = items.column().drop_nulls()
        if known.dtype != ids.dtype:
            known, ids = known.cast(pl.String), ids.cast(pl.String)
        return int((~ids.is_in(known.implode())).sum())

    def description(self) -> dict[str, Any]:
        """The names and kinds of the columns, for a manifest."""
        columns = [{"name": one.name, "kind": one.kind, "many": one.many} for one in self.columns]
        return {"title": self.title_column, "columns": columns}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays for a bundle."""
        found = {f"items.{name}": array for name, array in self.ids.arrays().items()}
        for number, column in enumerate(self.columns):
            found |= {f"{number}.{name}": array for name, array in column.arrays.items()}
        return found

    def is_same(self, other: ItemDetails | None) -> bool:
        """Whether both have the same rows and columns."""
        if other is None or self.description() != other.description():
            return False
        mine, others = self.arrays(), other.arrays()
        return mine.keys() == others.keys() and all(
            mine[name].dtype == others[name].dtype and mine[name].tobytes() == others[name].tobytes() for name in mine
        )

    @classmethod
    def from_arrays(cls, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> ItemDetails:
        """What `description` and `arrays` gave, after `detail_problems` found nothing wrong."""
        columns = tuple(
            DetailColumn(one["name"], one["kind"], part_of(arrays, f"{number}."))
            for number, one in enumerate(description["columns"])
        )
        return cls(Vocabulary.from_arrays(part_of(arrays, "items.")), columns, description["title"])


def part_of(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def as_details(items: ItemDetails | Source) -> ItemDetails:
    """The details, or those read from a source."""
    return items if isinstance(items, ItemDetails) else ItemDetails.read(items)


def _frame_name(name: str) -> str:
    return f"{name}_" if name == ID_COLUMN else name


def _chosen(names: Sequence[str], title: str | None, columns: Iterable[str] | None, source: str) -> list[str]:
    """The columns to keep, in the order of the table."""
    if isinstance(columns, str):
        raise DataError(Problem("must be a list of names", "columns", columns, "write it as ['genres', 'year']"))
    wanted = list(names) if columns is None else list(columns)
    for argument, name in [("title", title), *(("columns", name) for name in wanted)]:
        if name is not None and name not in names:
            shown = ", ".join(names) or "none"
            rule = f"{source} has no such column; its columns are: {shown}{did_you_mean(name, names)}"
            raise DataError(Problem(rule, argument, name))
    return [name for name in names if name in wanted or name == title]
