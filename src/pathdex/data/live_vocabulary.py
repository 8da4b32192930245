"""A vocabulary that changes: a fixed one, and the codes whose ids are new or gone since."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary, as_integer, as_kind

Codes = NDArray[np.int64]
GROWTH = 2


class LiveVocabulary(Vocabulary):
    """Looks ids up among the changed ones and in the vocabulary it began with.

    A change costs time for the changed ids only. The caller keeps readers out meanwhile.
    """

    def __init__(self, base: Vocabulary) -> None:
        self._base, self._size = base, len(base)
        self._changed = np.full(max(1024, GROWTH * len(base)), False)
        self._id_of: dict[int, Id | None] = {}
        self._code_of: dict[Any, int] = {}
        self._gone = set(base.removed.tolist())

    def apply(self, codes: Codes, ids: Vocabulary, removed: Codes, size: int) -> None:
        """Give `codes` new ids and `removed` none; the vocabulary then has `size` codes."""
        if not self._size and len(ids):
            self._base = ids.take(codes[:0])
        ids = as_kind(ids, self.kind)
        if size > len(self._changed):
            grown = np.full(GROWTH * size, False)
            grown[: self._size] = self._changed[: self._size]
            self._changed = grown
        for code in (*codes.tolist(), *removed.tolist()):
            old = self._id_of.pop(code, None)
            if old is not None:
                del self._code_of[old]
        for code in removed.tolist():
            self._id_of[code] = None
        names = ids.ids(range(len(ids)))
        self._id_of.update(zip(codes.tolist(), names, strict=True))
        self._code_of.update(zip(names, codes.tolist(), strict=True))
        self._changed[codes], self._changed[removed] = True, True
        self._gone.difference_update(codes.tolist())
        self._gone.update(removed.tolist())
        self._size = size

    @property
    def kind(self) -> str:
        return self._base.kind

    def __len__(self) -> int:
        return self._size

    @property
    def removed(self) -> Codes:
        return np.array(sorted(self._gone), np.int64)

    @property
    def num_ids(self) -> int:
        return self._size - len(self._gone)

    def code(self, one: Id) -> int:
        key: Any = str(one) if self.kind == "str" else as_integer(one)
        if key in self._code_of:
            return self._code_of[key]
        code = self._base.code(one)
        return UNKNOWN if code == UNKNOWN or self._changed[code] else code

    def codes(self, ids: Iterable[Id]) -> Codes:
        given = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        codes = self._base.codes(given)
        if not self._id_of:
            return codes
        codes[self._changed[codes] & (codes != UNKNOWN)] = UNKNOWN
        for place in np.flatnonzero(codes == UNKNOWN).tolist():
            key: Any = str(given[place]) if self.kind == "str" else as_integer(given[place])
            codes[place] = self._code_of.get(key, UNKNOWN)
        return codes

    def id(self, code: int) -> Id:
        return self.ids([code])[0]

    def ids(self, codes: Iterable[int]) -> list[Id]:
        chosen = codes if isinstance(codes, np.ndarray) else np.fromiter(codes, np.int64)
        changed = self._changed[chosen]
        if not changed.any():
            return self._base.ids(chosen)
        kept = iter(self._base.ids(chosen[~changed]))
        gone: Id = "" if self.kind == "str" else 0
        found = []
        for code, is_new in zip(chosen.tolist(), changed.tolist(), strict=True):
            one = self._id_of[code] if is_new else next(kept)
            found.append(gone if one is None else one)
        return found

    def fixed(self) -> Vocabulary:
        """The ids of this moment as an ordinary vocabulary."""
        codes = np.array(sorted(code for code, one in self._id_of.items() if one is not None), np.int64)
        new = [self._id_of[code] for code in codes.tolist()]
        ids = Vocabulary(np.array(new, np.int64) if self.kind == "int" else [str(one) for one in new])
        return self._base.with_changes(codes, ids, self.removed, self._size)

    def column(self) -> pl.Series:
        return self.fixed().column()

    def take(self, codes: NDArray[np.integer]) -> Vocabulary:
        return self.fixed().take(codes)

    def arrays(self, *, index: bool = True) -> dict[str, NDArray[Any]]:
        return self.fixed().arrays(index=index)

    def with_changes(self, codes: Codes, ids: Vocabulary, removed: Codes, size: int) -> Vocabulary:
        return self.fixed().with_changes(codes, ids, removed, size)
