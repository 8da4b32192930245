"""One column of a catalogue table, and the conditions that a query can put on it.

Text, integers and booleans are stored as codes of a sorted dictionary: a condition is resolved once against the
dictionary and then compares int32 codes. Other numbers are stored as float64.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pathdex.data.multi_values import find_separator, split_cells
from pathdex.data.vocabulary import UNKNOWN, Vocabulary
from pathdex.errors import QueryError

ValueKind: TypeAlias = Literal["text", "integer", "boolean", "number"]

_NUMBER = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_BOOLEANS = {"true": 1, "false": 0}
_RULES: dict[ValueKind, tuple[str, str]] = {
    "text": ("holds text", "pass text"),
    "integer": ("holds whole numbers", "pass one"),
    "boolean": ("holds booleans", "pass true or false"),
    "number": ("holds numbers", "pass one"),
}
"""What a column of each kind holds, and what to pass."""
FIND = ""
"""The separator is to be found."""
_MANY_DIGITS = 400
_INFINITE = (-math.inf, math.inf)


class AnyOf(NamedTuple):
    """Matches these values: dictionary codes or numbers, sorted and distinct."""

    values: tuple[float, ...]


class Between(NamedTuple):
    """Matches values from `low` to `high`, both included: dictionary codes or numbers."""

    low: float
    high: float


Condition: TypeAlias = AnyOf | Between


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one attribute, by row of the table or, once aligned, by item code."""

    name: str
    kind: ValueKind
    data: NDArray[np.int32] | NDArray[np.float64]
    """Codes of `dictionary`, `UNKNOWN` for missing; for numbers float64, NaN for missing."""
    dictionary: Vocabulary | None
    """The distinct values in sorted order; None for numbers."""
    owners: NDArray[np.int32] | None = None
    """For lists: the row of each value. None if each row has one value."""
    separator: str | None = None
    """What separated the values in the cells of the table; None if they were not split."""

    @property
    def description(self) -> str:
        return self.kind if self.owners is None else f"list of {self.kind}"

    def align(self, item_of_row: NDArray[np.int64], num_items: int) -> Column:
        """The same values by item code, without rows whose item is `UNKNOWN`."""
        if self.owners is not None:
            owners = item_of_row[self.owners]
            known = owners != UNKNOWN
            return replace(self, data=self.data[known], owners=owners[known].astype(np.int32))
        data = np.full(num_items, np.nan if self.dictionary is None else UNKNOWN, self.data.dtype)
        known = item_of_row != UNKNOWN
        data[item_of_row[known]] = self.data[known]
        return replace(self, data=data)

    def changed(
        self,
        table: Column,
        codes: NDArray[np.int64],
        rows: NDArray[np.int64],
        removed: NDArray[np.int64],
        num_items: int,
    ) -> Column:
        """An aligned column after `codes` became the items in `rows` of the table, and `removed` no items."""
        known = rows != UNKNOWN
        if self.owners is not None and table.owners is not None:
            kept = ~np.isin(self.owners, np.concatenate([codes, removed]))
            item_of_row = dict(zip(rows[known].tolist(), codes[known].tolist(), strict=True))
            joining = np.flatnonzero(np.isin(table.owners, rows[known]))
            owners = np.array([item_of_row[row] for row in table.owners[joining].tolist()], np.int32)
            data = np.concatenate([self.data[kept], table.data[joining]])
            return replace(self, data=data, owners=np.concatenate([self.owners[kept], owners]))
        missing = np.nan if self.dictionary is None else UNKNOWN
        data = np.full(num_items, missing, self.data.dtype)
        data[: len(self.data)] = self.data
        data[codes], data[removed] = missing, missing
        data[codes[known]] = table.data[rows[known]]
        return replace(self, data=data)

    def condition(self, given: Any) -> Condition:
        """A condition of a query in canonical form."""
        if isinstance(given, Mapping):
            return self._range(given)
        many = isinstance(given, Iterable) and not isinstance(given, str | bytes)
        found = {self._value(one, given) for one in (given if many else [given])}
        return AnyOf(tuple(sorted(one for one in found if one is not None)))

    def select(self, condition: Condition, num_items: int) -> NDArray[np.bool_]:
        """The mask of the items that match. The column must be aligned."""
        hits = self._hits(condition)
        if self.owners is None:
            return hits
        mask = np.zeros(num_items, np.bool_)
        mask[self.owners[hits]] = True
        return mask

    def _hits(self, condition: Condition) -> NDArray[np.bool_]:
        data = self.data
        if isinstance(condition, Between):
            return (data >= condition.low) & (data <= condition.high)
        if len(condition.values) == 1:
            return np.asarray(data == condition.values[0])
        if self.dictionary is None:
            return np.isin(data, condition.values)
        # Missing values have code -1, so the table's last entry answers for them.
        wanted = np.zeros(len(self.dictionary) + 1, np.bool_)
        wanted[list(map(int, condition.values))] = True
        return wanted[data]

    def _value(self, one: Any, given: Any) -> float | None:
        """One value as a code or a number; None if no item has it."""
        plain = _plain(one)
        key: Any
        if self.kind == "text":
            key = plain if isinstance(plain, str | int) and not isinstance(plain, bool) else None
        elif self.kind == "boolean":
            key = _truth(plain)
        else:
            key = int(plain) if isinstance(plain, bool) and self.kind == "integer" else _number(plain)
        if key is None or (self.kind == "integer" and isinstance(plain, str) and not isinstance(key, int)):
            raise self._error(given, *_RULES[self.kind])
        if self.dictionary is None:
            return _fraction(key)
        code = self.dictionary.code(key)
        if code == UNKNOWN and self.separator is not None and self.separator in str(key):
            rule = f"holds several values per item, separated by {self.separator!r}"
            raise self._error(
                given, rule, f"pass one of them, or a list; lists={{{self.name!r}: None}} keeps whole cells"
            )
        return None if code == UNKNOWN else code

    def _range(self, given: Mapping[Any, Any]) -> Condition:
        if self.kind not in ("integer", "number"):
            rule = f"holds {self.kind} values, which have no range"
            raise self._error(given, rule, "pass a value or a list of values")
        bounds = {name: bound for name, bound in given.items() if bound is not None}
        if not bounds or not bounds.keys() <= {"min", "max"}:
            raise self._error(given, "takes a range with min, max or both", "write it as {'min': 5, 'max': 20}")
        numbers = {name: _number(_plain(bound)) for name, bound in bounds.items()}
        low, high = numbers.get("min", -math.inf), numbers.get("max", math.inf)
        if low is None or high is None:
            raise self._error(given, "takes numbers for min and max", "leave one out for no limit")
        if low > high:
            raise self._error(given, "takes a range whose min is at most its max", "swap them")
        if self.dictionary is None:
            return Between(_fraction(low), _fraction(high))
        distinct = self.dictionary.arrays(index=False)["ids"]
        # Whole bounds compare exactly, even past 2^53, where float64 does not.
        first = bisect_left(distinct, low if low in _INFINITE else math.ceil(low))
        last = bisect_right(distinct, high if high in _INFINITE else math.floor(high)) - 1
        return Between(first, last) if first <= last else AnyOf(())

    def _error(self, given: Any, rule: str, remedy: str) -> QueryError:
        if given is None:
            remedy += ", or leave the column out for no condition"
        return QueryError(f"the column {rule}", argument=f"where[{self.name!r}]", value=given, remedy=remedy)


def make_column(values: pl.Series, *, text_file: bool, separator: str | None = FIND) -> Column | None:
    """A column of a table, encoded for conditions; None for a type that supports none.

    `separator` splits cells of text into lists; None keeps them, and by default it is found. In text files a column
    holds integers, numbers or booleans only if every value is written as one, so `007` stays text.
    """
    name, owners = values.name, None
    if values.dtype in (pl.String, pl.Categorical, pl.Enum):
        values = values.cast(pl.String)
        separator = find_separator(values) if separator == FIND else separator
        if separator is not None:
            values = split_cells(values, separator)
    else:
        separator = None
    if isinstance(values.dtype, pl.Array):
        values = values.arr.to_list()
    if isinstance(values.dtype, pl.List):
        lengths = values.list.len().fill_null(0)
        owners = np.repeat(np.arange(len(values), dtype=np.int32), lengths.to_numpy())
        values = values.filter(lengths > 0).explode()
    typed = typed_values(values, text_file=text_file)
    if typed is None:
        return None
    kind, values = typed
    if kind == "number":
        return Column(name, kind, values.fill_null(np.nan).to_numpy(), None, owners, separator)
    present = values.is_not_null().to_numpy()
    codes = np.full(len(values), UNKNOWN, np.int32)
    codes[present], dictionary = Vocabulary.encode(values.drop_nulls())
    return Column(name, kind, codes, dictionary, owners, separator)


def typed_values(values: pl.Series, *, text_file: bool) -> tuple[ValueKind, pl.Series] | None:
    """The kind of a column, and its values as Int64, Float64 or String."""
    dtype = values.dtype
    if dtype == pl.String and text_file and values.null_count() < len(values):
        return _guessed(values)
    if dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        return "text", values.cast(pl.String)
    if dtype == pl.Boolean:
        return "boolean", values.cast(pl.Int64)
    if dtype.is_integer():
        whole = values.cast(pl.Int64, strict=False)
        return ("integer", whole) if whole.null_count() == values.null_count() else None
    return ("number", values.cast(pl.Float64)) if dtype.is_numeric() else None


def _guessed(values: pl.Series) -> tuple[ValueKind, pl.Series]:
    whole = values.cast(pl.Int64, strict=False)
    if (whole.cast(pl.String) == values).all() and whole.null_count() == values.null_count():
        return "integer", whole
    if values.str.contains(f"^{_NUMBER}$").all():
        return "number", values.cast(pl.Float64)
    small = values.str.to_lowercase()
    if small.is_in(list(_BOOLEANS)).all():
        return "boolean", (small == "true").cast(pl.Int64)
    return "text", values


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _number(value: Any) -> int | float | None:
    """A number, or text that is written as one; None for anything else."""
    if isinstance(value, str):
        if not re.fullmatch(_NUMBER, value):
            return None
        # int() refuses thousands of digits.
        whole = value.removeprefix("-").isdecimal() and value != "-0" and len(value) < _MANY_DIGITS
        return int(value) if whole else float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return value if is_number else None


def _truth(value: Any) -> int | None:
    if isinstance(value, str):
        return _BOOLEANS.get(value.lower())
    return int(value) if isinstance(value, int | float) and value in (0, 1) else None


def _fraction(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
