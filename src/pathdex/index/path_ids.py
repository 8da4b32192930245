"""Small numbers of paths, so that |c| of Algorithm 2 is an array over the paths that occur.

By default a structure has few more paths than the catalogue has items. Then a code is its own number, and the M-step
reads the score table in place. Only codes that spread over a larger space get consecutive numbers through a hash table,
which grows with the distinct paths that occur, not with K^D.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.hashing import EMPTY, find_home, find_slot, new_table
from pathdex.kernels.prefetch import prefetch_lines
from pathdex.kernels.types import Floats, Ints

_CODES_PER_ITEM = 8
"""Codes below this many times the number of items are their own numbers: |c| then takes at most 32 bytes per item."""


class PathNumbers:
    """Numbers for path codes, below `len(self)`."""

    def __init__(self, num_codes: int, num_items: int) -> None:
        """Number codes below `num_codes` for a catalogue of this size."""
        self._same = num_codes <= min(_CODES_PER_ITEM * num_items, 2**31 - 1)
        self._length = num_codes if self._same else 0
        self._number_of = new_table(8)

    @classmethod
    def for_table(cls, codes: Ints, current: Ints) -> PathNumbers:
        """Numbers for the codes of a score table and of the current paths."""
        return cls(1 + int(max(codes.max(initial=0), current.max(initial=0))), len(codes))

    def __len__(self) -> int:
        return self._length

    def number(self, codes: Ints, scores: Floats | None = None) -> NDArray[np.integer]:
        """The numbers of codes (item, path), in an array that may be `codes` itself; new codes get the next ones.

        With `scores`, a row ends at its first score of 0.
        """
        if self._same:
            return codes
        numbers = np.full(codes.shape, EMPTY, np.int32)
        used = np.full(len(codes), codes.shape[1]) if scores is None else (scores > 0).sum(axis=1)
        self._number_of, self._length = _number(codes, used, self._number_of, self._length, numbers)
        return numbers

    def codes(self, numbers: NDArray[np.integer]) -> Ints:
        """The codes of numbers (item, path)."""
        if self._same:
            return np.asarray(numbers, np.int64)
        used = self._number_of[self._number_of[:, 0] != EMPTY]
        code_of = np.empty(self._length, np.int64)
        code_of[used[:, 1]] = used[:, 0]
        codes: Ints = code_of[numbers]
        return codes

    def find(self, codes: Ints) -> Ints:
        """The numbers of codes, `EMPTY` for one that has none."""
        if self._same:
            return np.where(codes < self._length, codes, EMPTY)
        return _find(codes.ravel(), self._number_of).reshape(codes.shape)


@njit(cache=True, nogil=True)
def _number(codes: Ints, used: Ints, number_of: Ints, total: int, numbers: NDArray[np.int32]) -> tuple[Ints, int]:
    for v in range(len(codes)):
        number_of = _with_room(number_of, total + used[v])
        if v + 1 < len(codes):
            for c in range(used[v + 1]):
                prefetch_lines(number_of, find_home(number_of, codes[v + 1, c]), 1)
        for c in range(used[v]):
            slot = find_slot(number_of, codes[v, c])
            if number_of[slot, 0] == EMPTY:
                number_of[slot, 0], number_of[slot, 1] = codes[v, c], total
                total += 1
            numbers[v, c] = number_of[slot, 1]
    return number_of, total


@njit(cache=True, nogil=True)
def _find(codes: Ints, number_of: Ints) -> Ints:
    numbers = np.full(len(codes), EMPTY, np.int64)
    for place in range(len(codes)):
        slot = find_slot(number_of, codes[place])
        if codes[place] != EMPTY and number_of[slot, 0] == codes[place]:
            numbers[place] = number_of[slot, 1]
    return numbers


@njit(cache=True, nogil=True)
def _with_room(table: Ints, entries: int) -> Ints:
    """The table, or a larger copy if `entries` would fill more than half of it."""
    if 2 * entries <= len(table):
        return table
    larger = new_table(entries)
    for old in range(len(table)):
        if table[old, 0] != EMPTY:
            slot = find_slot(larger, table[old, 0])
            larger[slot, 0], larger[slot, 1] = table[old, 0], table[old, 1]
    return larger
