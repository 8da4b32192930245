"""A catalogue table: attributes of the items, for filters such as `where={"category": ["a", "b"]}`."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pathdex.data.attribute_filters import FIND, AnyOf, Column, Condition, make_column
from pathdex.data.findings import raise_errors
from pathdex.data.formats import open_source
from pathdex.data.multi_values import check_lists
from pathdex.data.rows import check_rows, refuse_repeats
from pathdex.data.source_table import FileOptions, Source, reading
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.errors import DataError, Problem, QueryError, did_you_mean

Mask: TypeAlias = NDArray[np.bool_]
_Key: TypeAlias = tuple[tuple[str, Condition], ...]

_EXAMPLE = "write it as {'category': ['a', 'b']}"
CACHE_BYTES = 64 * 2**20
"""The default memory limit for cached masks."""


@dataclass(frozen=True, eq=False)
class Attributes:
    """A table with one row per item. Every column except the item column is an attribute for `where`."""

    ids: pl.Series
    """The item of each row: integers or text."""
    values: Mapping[str, Column]
    """The attributes by row."""
    skipped: Mapping[str, str]
    """Columns of a type that supports no conditions, with that type."""

    @classmethod
    def read(
        cls,
        source: Source,
        *,
        item: str | None = None,
        lists: Mapping[str, str | None] | None = None,
        format: str | None = None,
    ) -> Attributes:
        """Read a catalogue table from a CSV, TSV, JSON lines or Parquet file, a frame or an Arrow table.

        The item column is found by common names (`item_id`, `movieId`, `sku` ...) unless named. Attributes are text,
        integers, booleans, numbers, or lists of these; dates and structs are skipped. Two rows for one item are an
        error. Text with several values per cell, such as `drama|war`, becomes lists where `|`, `;` or `['a', 'b']` is
        found; `lists` declares it, as in `{"genres": ",", "title": None}`, where None keeps the cells.
        """
        table = open_source(source, FileOptions(format))
        with reading(table.name):
            frame = table.frame.collect()
        rows = check_rows(replace(table, frame=frame.lazy()), {"item": item})
        raise_errors(rows.findings)
        ids = rows.frame.collect()["item"]
        refuse_repeats(ids, rows.columns["item"], table.name)
        others = frame.drop(rows.columns["item"])
        if not others.width:
            rule = f"{table.name} has only the column {rows.columns['item']!r}"
            raise DataError(Problem(rule, remedy="add at least one attribute"))
        lists = lists or {}
        check_lists(lists, others, table.name)
        made = {
            column.name: make_column(column, text_file=not table.typed, separator=lists.get(column.name, FIND))
            for column in others
        }
        return cls(
            ids,
            {name: column for name, column in made.items() if column is not None},
            {name: str(others[name].dtype) for name, column in made.items() if column is None},
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names that `where` accepts."""
        return tuple(self.values)

    @cached_property
    def _row_of(self) -> Vocabulary:
        return Vocabulary.from_column(self.ids)

    def rows_of(self, ids: Sequence[Id]) -> NDArray[np.int64]:
        """The row of each item, or `UNKNOWN`."""
        return self._row_of.codes(ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}: {column.description}" for name, column in self.values.items())
        return f"Attributes({len(self):,} items; {kinds})"

    def align(self, items: Vocabulary, *, cache_bytes: int = CACHE_BYTES) -> AlignedAttributes:
        """The table by the item codes of a model.

        Rows of items unknown to the model are ignored; items without a row match no condition.
        """
        item_of_row = _codes(self.ids, items)
        used = int((item_of_row != UNKNOWN).sum())
        if len(items) and not used:
            warnings.warn(
                f"none of the {len(items):,} items of the model has a row in the catalogue table, so no item matches "
                "any condition; check its item column",
                stacklevel=2,
            )
        values = {name: column.align(item_of_row, len(items)) for name, column in self.values.items()}
        return AlignedAttributes(values, self.skipped, len(items), len(items) - used, len(self) - used, cache_bytes)


@dataclass(eq=False, repr=False)
class AlignedAttributes:
    """Attributes by item code. Thread-safe."""

    values: Mapping[str, Column]
    """The attributes by item code."""
    skipped: Mapping[str, str]
    num_items: int
    missing: int
    """How many items of the model have no row in the table."""
    unknown: int
    """How many rows of the table are of items unknown to the model."""
    cache_bytes: InitVar[int] = CACHE_BYTES

    def __post_init__(self, cache_bytes: int) -> None:
        self._cache = _MaskCache(cache_bytes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names that `where` accepts."""
        return tuple(self.values)

    def __repr__(self) -> str:
        return f"AlignedAttributes({self.num_items:,} items, {self.missing:,} without a row; {', '.join(self.columns)})"

    def mask(self, where: Mapping[str, Any]) -> Mask:
        """Which items match all conditions, by item code; read-only.

        A condition is a value, a list of values of which any may match (an empty list matches no item), or
        `{"min": a, "max": b}` with both ends included and either optional. An item with a list of values matches if
        any of them does. Items without a value match no condition. Without conditions, every item matches.
        """
        if not isinstance(where, Mapping):
            raise QueryError("must map columns to values", argument="where", value=where, remedy=_EXAMPLE)
        conditions = {name: self._column(name, given).condition(given) for name, given in where.items()}
        key = tuple(sorted(conditions.items(), key=lambda one: one[0]))
        found = self._cache.get(key)
        return self._cache.put(key, self._compute(key)) if found is None else found

    def changed(
        self,
        attributes: Attributes,
        codes: NDArray[np.int64],
        ids: Sequence[Id],
        removed: NDArray[np.int64],
        num_items: int,
    ) -> AlignedAttributes:
        """The attributes after `codes` got new ids and `removed` lost theirs; `attributes` is the whole table."""
        if not len(codes) and not len(removed) and num_items == self.num_items:
            return self
        rows = attributes.rows_of(ids)
        values = {
            name: column.changed(attributes.values[name], codes, rows, removed, num_items)
            for name, column in self.values.items()
        }
        return AlignedAttributes(values, self.skipped, num_items, self.missing, self.unknown, self._cache.limit)

    def _compute(self, key: _Key) -> Mask:
        mask = np.ones(self.num_items, np.bool_)
        for name, condition in key:
            mask &= self.values[name].select(condition, self.num_items)
        return mask

    def _column(self, name: Any, given: Any) -> Column:
        if name in self.values:
            return self.values[name]
        argument = f"where[{name!r}]"
        if name in self.skipped:
            rule = f"a column of type {self.skipped[name]} supports no conditions"
            remedy = "cast it to text, whole numbers, booleans, numbers or lists of these, and read the table again"
            raise QueryError(rule, argument=argument, value=given, remedy=remedy)
        shown = ", ".join(self.columns) or "none"
        rule = f"the catalogue table has no such column; its columns are: {shown}{did_you_mean(name, self.columns)}"
        raise QueryError(rule, argument=argument, value=given)


class _MaskCache:
    """A least-recently-used cache of masks, limited in bytes."""

    ENTRY_BYTES = 1024
    """An upper estimate of an entry's size without its mask and the values of its conditions."""
    VALUE_BYTES = 64

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._masks: OrderedDict[_Key, Mask] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: _Key) -> Mask | None:
        with self._lock:
            mask = self._masks.get(key)
            if mask is not None:
                self._masks.move_to_end(key)
            return mask

    def put(self, key: _Key, mask: Mask) -> Mask:
        """Store a mask, read-only. Returns the stored one, which may be another thread's."""
        mask.flags.writeable = False
        with self._lock:
            if key in self._masks:
                return self._masks[key]
            self._masks[key] = mask
            self._bytes += self._size(key, mask)
            while self._bytes > self.limit:
                self._bytes -= self._size(*self._masks.popitem(last=False))
        return mask

    def _size(self, key: _Key, mask: Mask) -> int:
        values = sum(len(condition.values) for _, condition in key if isinstance(condition, AnyOf))
        return mask.nbytes + self.ENTRY_BYTES + self.VALUE_BYTES * values


def _codes(ids: pl.Series, items: Vocabulary) -> NDArray[np.int64]:
    """The code of each row's item, or `UNKNOWN`; text matches integers as in `Vocabulary.code`."""
    known = items.column()
    if known.dtype != ids.dtype:
        # Text becomes an integer only if the integer prints as that text.
        whole = ids.cast(known.dtype, strict=False)
        ids = pl.select(pl.when(whole.cast(ids.dtype) == ids).then(whole)).to_series()
    places = pl.DataFrame({"id": known}).with_row_index("code")
    found = pl.DataFrame({"id": ids}).join(places, on="id", how="left", maintain_order="left")["code"]
    return found.cast(pl.Int64).fill_null(UNKNOWN).to_numpy()
