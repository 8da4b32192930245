"""External ids (str or int) to codes 0..n-1 and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

Id: TypeAlias = str | int
UNKNOWN = -1


class Vocabulary:
    """Distinct ids in a fixed order; an id's code is its place.

    Integer ids live in one int64 array. String ids live in one UTF-8 byte array with offsets, so both kinds map from
    disk without being parsed.
    """

    def __init__(self, ids: NDArray[np.int64] | Sequence[str]) -> None:
        if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
            self._integers: NDArray[np.int64] | None = ids.astype(np.int64, copy=False)
            self._text = np.empty(0, np.uint8)
            self._offsets = np.zeros(1, np.int64)
        else:
            encoded = [str(one).encode() for one in ids]
            self._integers = None
            self._text = np.frombuffer(b"".join(encoded), np.uint8)
            self._offsets = np.concatenate([[0], np.cumsum([len(one) for one in encoded])]).astype(np.int64)

    @classmethod
    def from_column(cls, ids: pl.Series) -> Vocabulary:
        """From a column of distinct integers or strings, without a Python object per id."""
        if ids.dtype.is_integer():
            return cls(ids.cast(pl.Int64).to_numpy())
        column = pa.concat_arrays([ids.to_arrow().cast(pa.large_string())])
        _, offsets, text = column.buffers()
        ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
        used = np.frombuffer(text or b"", np.uint8)[ends[0] : ends[-1]]
        return cls.from_arrays({"text": used, "offsets": ends - ends[0]})

    @classmethod
    def encode(cls, column: pl.Series) -> tuple[NDArray[np.int32], Vocabulary]:
        """The distinct values of a column in sorted order, and the code of each row. The column has no nulls."""
        encoded = column.rechunk().to_arrow().dictionary_encode()
        distinct = pl.Series(encoded.dictionary)
        order = distinct.arg_sort().to_numpy()
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return place[encoded.indices.to_numpy()], cls.from_column(distinct.gather(order))

    def column(self) -> pl.Series:
        """All ids by code, as a column of integers or text, without a Python object per id."""
        if self._integers is not None:
            return pl.Series(self._integers)
        offsets, text = pa.py_buffer(self._offsets), pa.py_buffer(self._text)
        return pl.Series(pa.LargeStringArray.from_buffers(len(self), offsets, text))

    def take(self, codes: NDArray[np.integer]) -> Vocabulary:
        """The ids of the given codes as a vocabulary of their own, in the given order."""
        if self._integers is not None:
            return Vocabulary(self._integers[codes])
        starts, lengths = self._offsets[:-1][codes], np.diff(self._offsets)[codes]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Vocabulary.from_arrays({"text": self._text[places], "offsets": offsets})

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
        """The code of one id, or `UNKNOWN`. The text "12" finds the integer id 12 and the other way round."""
        if self._integers is None:
            return self._codes.get(str(one), UNKNOWN)
        try:
            key = int(one)
        except (TypeError, ValueError, OverflowError):
            return UNKNOWN
        # int() also takes 12.7, "1_2" and "012"; none of these is the id 12.
        same = str(key) == one if isinstance(one, str) else key == one
        return self._codes.get(key, UNKNOWN) if same else UNKNOWN

    def codes(self, ids: Iterable[Id]) -> NDArray[np.int64]:
        """The codes of many ids; `UNKNOWN` where there is none."""
        return np.fromiter((self.code(one) for one in ids), np.int64)

    def id(self, code: int) -> Id:
        if self._integers is not None:
            return int(self._integers[code])
        return bytes(self._text[self._offsets[code] : self._offsets[code + 1]]).decode()

    def ids(self, codes: Iterable[int]) -> list[Id]:
        return [self.id(int(code)) for code in codes]

    @cached_property
    def _codes(self) -> dict[Id, int]:
        if self._integers is not None:
            return {one: code for code, one in enumerate(self._integers.tolist())}
        text, offsets = self._text.tobytes(), self._offsets.tolist()
        return {text[start:end].decode(): code for code, (start, end) in enumerate(pairwise(offsets))}

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """What a bundle stores."""
        if self._integers is not None:
            return {"ids": self._integers}
        return {"text": self._text, "offsets": self._offsets}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.generic]]) -> Vocabulary:
        vocabulary = cls.__new__(cls)
        integers = arrays.get("ids")
        vocabulary._integers = None if integers is None else integers  # type: ignore[assignment]
        vocabulary._text = arrays.get("text", np.empty(0, np.uint8))  # type: ignore[assignment]
        vocabulary._offsets = arrays.get("offsets", np.zeros(1, np.int64))  # type: ignore[assignment]
        return vocabulary
