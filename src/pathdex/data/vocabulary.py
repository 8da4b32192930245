"""External ids (str or int) to codes 0..n-1 and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from pathdex.data.ragged import take_slices
from pathdex.errors import DataError, Problem

Id: TypeAlias = str | int
UNKNOWN = -1
DICT_LIMIT = 100_000
"""Up to this many ids are looked up in a dict, which takes less than 0.1 s to build and a few MB."""
SLOTS_PER_ID = 2
"""The size of the hash index, in int32 slots."""
_INT64 = np.iinfo(np.int64)
_NO_TEXT, _NO_OFFSETS, _NO_CODES = np.empty(0, np.uint8), np.zeros(1, np.int64), np.empty(0, np.int64)


class Vocabulary:
    """Distinct ids in a fixed order; an id's code is its position.

    Integer ids are one int64 array, string ids one UTF-8 byte array with offsets, so both map from disk without
    parsing. Few ids are looked up in a dict, many in a hash index, which is mapped from disk as well.

    A code whose item was removed has no id. It keeps its place, which a later item can take.
    """

    def __init__(self, ids: NDArray[np.int64] | Sequence[str]) -> None:
        if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
            self._keep({"ids": ids.astype(np.int64, copy=False)})
        else:
            encoded = [str(one).encode() for one in ids]
            ends = np.cumsum([0, *(len(one) for one in encoded)], dtype=np.int64)
            self._keep({"text": np.frombuffer(b"".join(encoded), np.uint8), "offsets": ends})

    def _keep(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        kept = {name: _read_only(array) for name, array in arrays.items()}
        self._integers, self._slots = kept.get("ids"), kept.get("slots")
        self._text, self._offsets = kept.get("text", _NO_TEXT), kept.get("offsets", _NO_OFFSETS)
        self._removed = kept.get("removed", _NO_CODES)

    @classmethod
    def from_column(cls, ids: pl.Series) -> Vocabulary:
        """From a column of distinct integers or strings, without creating a Python object per id."""
        if ids.dtype.is_integer():
            return cls(ids.cast(pl.Int64).to_numpy())
        column = pa.concat_arrays([ids.alias("").to_arrow().cast(pa.large_string())])
        _, offsets, text = column.buffers()
        ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
        used = np.frombuffer(text or b"", np.uint8)[ends[0] : ends[-1]]
        return cls.from_arrays({"text": used, "offsets": ends - ends[0]})

    @classmethod
    def encode(cls, column: pl.Series) -> tuple[NDArray[np.int32], Vocabulary]:
        """The distinct values of a column in sorted order, and the code of each row. The column has no nulls."""
        encoded = column.rechunk().alias("").to_arrow().dictionary_encode()
        distinct = pl.Series(encoded.dictionary)
        order = distinct.arg_sort().to_numpy()
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return place[encoded.indices.to_numpy()], cls.from_column(distinct.gather(order))

    def column(self) -> pl.Series:
        """All ids by code, as a column of integers or text, null for removed ones, without a Python object per id."""
        if self._integers is not None:
            ids = pl.Series(self._integers)
        else:
            offsets, text = pa.py_buffer(self._offsets), pa.py_buffer(self._text)
            ids = pl.Series(pa.LargeStringArray.from_buffers(len(self), offsets, text))
        return ids.scatter(self._removed, None) if len(self._removed) else ids

    def take(self, codes: NDArray[np.integer]) -> Vocabulary:
        """A vocabulary of the ids with the given codes, in the given order."""
        if self._integers is not None:
            return Vocabulary(self._integers[codes])
        text, offsets = take_slices(self._text, self._offsets[:-1][codes], np.diff(self._offsets)[codes])
        return Vocabulary.from_arrays({"text": text, "offsets": offsets})

    def with_changes(
        self, codes: NDArray[np.int64], ids: Vocabulary, removed: NDArray[np.int64], size: int
    ) -> Vocabulary:
        """A vocabulary of `size` codes in which `codes` have new ids and `removed` have none."""
        if not len(self) and len(ids):
            self = ids.take(_NO_CODES)
        ids, old = as_kind(ids, self.kind), len(self)
        if self._integers is not None and ids._integers is not None:
            values = np.zeros(size, np.int64)
            values[:old], values[codes], values[removed] = self._integers, ids._integers, 0
            arrays = {"ids": values}
        else:
            starts, lengths = np.zeros(size, np.int64), np.zeros(size, np.int64)
            starts[:old], lengths[:old] = self._offsets[:-1], np.diff(self._offsets)
            starts[codes], lengths[codes] = len(self._text) + ids._offsets[:-1], np.diff(ids._offsets)
            lengths[removed] = 0
            text, offsets = take_slices(np.concatenate([self._text, ids._text]), starts, lengths)
            arrays = {"text": text, "offsets": offsets}
        gone = np.union1d(np.setdiff1d(self._removed, codes), removed)
        return Vocabulary.from_arrays({**arrays, "removed": gone})

    @property
    def removed(self) -> NDArray[np.int64]:
        """The sorted codes that have no id, because their items were removed."""
        return self._removed

    @property
    def num_ids(self) -> int:
        """The number of ids. `len` counts all codes, also those without an id."""
        return len(self) - len(self._removed)

    def first_ids(self, count: int) -> list[Id]:
        """The first ids, at most `count`."""
        codes = np.arange(min(len(self), count + len(self.removed)))
        return self.ids(np.setdiff1d(codes, self.removed)[:count])

    @property
    def kind(self) -> str:
        """`"int"` or `"str"`."""
        return "str" if self._integers is None else "int"

    def __len__(self) -> int:
        return len(self._offsets) - 1 if self._integers is None else len(self._integers)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} {self.kind} ids)"

    def __contains__(self, one: object) -> bool:
        return isinstance(one, str | int | np.integer) and self.code(one) != UNKNOWN  # type: ignore[arg-type]

    def code(self, one: Id) -> int:
        """The code of one id, or `UNKNOWN`. The text "12" matches the integer id 12 and vice versa."""
        key = str(one) if self._integers is None else as_integer(one)
        if self._table is not None:
            return self._table.get(key, UNKNOWN)
        return int(self._find([key])[0])

    def codes(self, ids: Iterable[Id]) -> NDArray[np.int64]:
        """The codes of many ids, `UNKNOWN` for unknown ones."""
        if isinstance(ids, np.ndarray) and ids.dtype.kind in "iuU":
            given: list[Any] = ids.tolist()
        else:
            given = ids if isinstance(ids, list) else list(ids)
        kinds = set(map(type, given))
        if self._integers is None:
            keys = given if kinds <= {str} else list(map(str, given))
        else:
            keys = given if kinds <= {int} else list(map(as_integer, given))
        if self._table is not None:
            get = self._table.get
            return np.array([get(key, UNKNOWN) for key in keys], np.int64)
        return self._find(keys)

    def id(self, code: int) -> Id:
        if self._integers is not None:
            return int(self._integers[code])
        return bytes(self._text[self._offsets[code] : self._offsets[code + 1]]).decode()

    def ids(self, codes: Iterable[int]) -> list[Id]:
        chosen = codes if isinstance(codes, np.ndarray) else np.fromiter(codes, np.int64)
        if self._integers is not None:
            integers: list[Id] = self._integers[chosen].tolist()
            return integers
        starts, ends = self._offsets[:-1][chosen].tolist(), self._offsets[1:][chosen].tolist()
        text = self._text.data
        return [str(text[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]

    @cached_property
    def _table(self) -> dict[Id | None, int] | None:
        """A dict for few ids: a single lookup is ten times as fast as in the index. None for many ids."""
        if len(self) > DICT_LIMIT:
            return None
        table: dict[Id | None, int] = {one: code for code, one in enumerate(self.ids(range(len(self))))}
        if len(self._removed):
            gone = set(self._removed.tolist())
            table = {one: code for code, one in enumerate(self.ids(range(len(self)))) if code not in gone}
        return table

    @property
    def _index(self) -> NDArray[np.int32]:
        if self._slots is None:
            self._slots = _read_only(self.build_index())
        return self._slots

    def build_index(self) -> NDArray[np.int32]:
        """The hash index of the ids: one code per distinct id."""
        from pathdex.data.id_index import index_integers, index_texts

        gone = np.zeros(len(self), np.bool_)
        gone[self._removed] = True
        if self._integers is None:
            return index_texts(self._text, self._offsets, gone)
        return index_integers(self._integers, gone)

    def _find(self, keys: Sequence[Any]) -> NDArray[np.int64]:
        """The codes of keys: text for text ids; for integer ids, integers or None for what cannot be one."""
        from pathdex.data.id_index import find_integers, find_texts

        if self._integers is None:
            # A lone surrogate has no UTF-8 form; the bytes it gives occur in no id.
            encoded = [key.encode("utf-8", "surrogatepass") for key in keys]
            lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
            written = np.frombuffer(b"".join(encoded), np.uint8)
            return find_texts(self._text, self._offsets, self._index, written, lengths)
        possible = None
        try:
            wanted = np.array(keys, np.int64)
        except (TypeError, OverflowError):
            possible = [key is not None and _INT64.min <= key <= _INT64.max for key in keys]
            wanted = np.array([key if fits else 0 for key, fits in zip(keys, possible, strict=True)], np.int64)
        codes = find_integers(self._integers, self._index, wanted)
        return codes if possible is None else np.where(possible, codes, UNKNOWN)

    def arrays(self, *, index: bool = True) -> dict[str, NDArray[Any]]:
        """The arrays that a bundle stores; for many ids they include the hash index, unless `index` is False."""
        texts = {"text": self._text, "offsets": self._offsets}
        arrays = texts if self._integers is None else {"ids": self._integers}
        if len(self._removed):
            arrays["removed"] = self._removed
        return {**arrays, "slots": self._index} if index and len(self) > DICT_LIMIT else arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Vocabulary:
        """The inverse of `arrays`. A missing hash index is built at the first lookup."""
        vocabulary = cls.__new__(cls)
        vocabulary._keep(arrays)
        slots = vocabulary._slots
        if slots is not None and (slots.dtype != np.int32 or slots.shape != (SLOTS_PER_ID * len(vocabulary),)):
            rule = f"slots: {slots.dtype} of shape {slots.shape} is not an index of {len(vocabulary):,} ids"
            raise DataError(Problem(rule, remedy="leave it out to build it again"))
        return vocabulary


def as_kind(ids: Vocabulary, kind: str) -> Vocabulary:
    """The ids as a vocabulary of this kind: integers become text, but text does not become integers."""
    if ids.kind == kind:
        return ids
    if kind == "str":
        return Vocabulary([str(one) for one in ids.ids(range(len(ids)))])
    if len(ids):
        rule = f"the catalogue has integer ids, and {ids.id(0)!r} is text"
        raise DataError(Problem(rule, remedy="use integers, or write a new base with text ids"))
    return Vocabulary(_NO_CODES)


def as_integer(one: Any) -> int | None:
    """The integer id, or None. int() also accepts 12.7, "1_2" and "012"; none of these is the id 12."""
    try:
        key = int(one)
    except (TypeError, ValueError, OverflowError):
        return None
    same = str(key) == one if isinstance(one, str) else key == one
    return key if same else None


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only, contiguous view, which the compiled lookups expect.

    It is a plain ndarray, since indexing the memmap subclass is slow.
    """
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view
