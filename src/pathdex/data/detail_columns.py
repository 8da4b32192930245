"""One column of the details of items, as arrays that are mapped from a bundle without parsing.

values              (element,) numbers, or 0 and 1 for booleans
text, offsets       the UTF-8 bytes of all texts, and where each begins
lists               (row + 1,) for lists: where the elements of each row begin
missing             the ascending rows without a value; absent if there is none
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from pathdex.data.attribute_filters import ValueKind, typed_values

DTYPES: dict[ValueKind, str] = {"integer": "int64", "number": "float64", "boolean": "uint8"}
"""Kinds that are stored as `values`; text is stored as bytes."""


@dataclass(frozen=True, eq=False)
class DetailColumn:
    """The values of one column by row."""

    name: str
    kind: ValueKind
    arrays: Mapping[str, NDArray[Any]]

    @property
    def many(self) -> bool:
        """Whether a row has a list of values."""
        return "lists" in self.arrays

    @property
    def description(self) -> str:
        return f"list of {self.kind}" if self.many else self.kind

    @cached_property
    def _plain(self) -> dict[str, NDArray[Any]]:
        """The arrays without the class of mapped files, whose slices take several times as long."""
        return {name: np.asarray(array) for name, array in self.arrays.items()}

    @cached_property
    def _missing(self) -> frozenset[int]:
        return frozenset(self.arrays["missing"].tolist()) if "missing" in self.arrays else frozenset()

    def value(self, row: int) -> Any:
        """The value of a row, a list if the column has lists; None if it is missing."""
        if row in self._missing:
            return None
        if not self.many:
            return self._element(row)
        begin, end = self._plain["lists"][row : row + 2].tolist()
        return [self._element(number) for number in range(begin, end)]

    def _element(self, number: int) -> Any:
        if self.kind == "text":
            begin, end = self._plain["offsets"][number : number + 2].tolist()
            return self._plain["text"][begin:end].tobytes().decode()
        value = self._plain["values"][number].item()
        return bool(value) if self.kind == "boolean" else value

    def series(self) -> pl.Series:
        """All values as a column, null where they are missing."""
        if self.kind == "text":
            count = len(self.arrays["offsets"]) - 1
            buffers = pa.py_buffer(self.arrays["offsets"]), pa.py_buffer(self.arrays["text"])
            values = pl.Series(pa.LargeStringArray.from_buffers(count, *buffers))
        else:
            values = pl.Series(np.ascontiguousarray(self.arrays["values"]))
            values = values.cast(pl.Boolean) if self.kind == "boolean" else values
        if self.many:
            lists = pa.LargeListArray.from_arrays(pa.array(self.arrays["lists"]), values.to_arrow())
            values = pl.Series(lists)
        if "missing" in self.arrays:
            values = pl.select(
                pl.when(pl.int_range(len(values)).is_in(pl.Series(self.arrays["missing"]).implode()).not_()).then(
                    values
                )
            ).to_series()
        return values.alias(self.name)


def make_detail_column(values: pl.Series, *, text_file: bool) -> DetailColumn | None:
    """A column as arrays; None for a type that is not kept. Missing values in lists are left out."""
    name, arrays = values.name, dict[str, NDArray[Any]]()
    if isinstance(values.dtype, pl.Array):
        values = values.arr.to_list()
    if isinstance(values.dtype, pl.List):
        missing = values.is_null()
        values = values.list.drop_nulls()
        lengths = values.list.len().fill_null(0).to_numpy()
        arrays["lists"] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        typed = _typed(values.filter(pl.Series(lengths > 0)).explode(), text_file=text_file)
        present = None
    else:
        typed = _typed(values, text_file=text_file)
        missing = pl.Series(dtype=pl.Boolean) if typed is None else typed[1].is_null()
        present = missing
    if typed is None:
        return None
    kind, elements = typed
    if missing.any():
        arrays["missing"] = np.flatnonzero(missing.to_numpy()).astype(np.int64)
    if kind == "text":
        column = pa.concat_arrays([elements.fill_null("").rechunk().alias("").to_arrow().cast(pa.large_string())])
        _, offsets, text = column.buffers()
        ends = np.frombuffer(offsets or bytes(8), np.int64)[column.offset : column.offset + len(column) + 1]
        arrays["text"] = np.frombuffer(text or b"", np.uint8)[ends[0] : ends[-1]]
        arrays["offsets"] = ends - ends[0]
    else:
        if kind == "number" and present is None:
            elements = elements.fill_null(0.0)
        arrays["values"] = elements.fill_null(0).to_numpy().astype(DTYPES[kind])
    return DetailColumn(name, kind, arrays)


def _typed(values: pl.Series, *, text_file: bool) -> tuple[ValueKind, pl.Series] | None:
    """The kind of the values; dates become text, numbers that are not finite become missing."""
    if values.dtype.is_temporal():
        values = values.dt.to_string("iso") if values.dtype == pl.Duration else values.cast(pl.String)
    typed = typed_values(values, text_file=text_file)
    if typed is None and values.dtype.is_integer():
        return "text", values.cast(pl.String)
    if typed is not None and typed[0] == "number":
        return "number", pl.select(pl.when(typed[1].is_finite()).then(typed[1])).to_series()
    return typed
