"""Rows of different lengths in two flat arrays; every set of histories has this form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pathdex.storage.scratch import BLOCK, scratch_array

_T = TypeVar("_T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Ragged:
    """Row i is `values[offsets[i]:offsets[i + 1]]`."""

    values: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def from_rows(cls, rows: Iterable[Iterable[int]]) -> Ragged:
        arrays = [np.asarray(row if isinstance(row, np.ndarray) else list(row), np.int32) for row in rows]
        if len(arrays) == 1:  # A single query, which must be fast.
            return cls(arrays[0].copy(), np.array([0, len(arrays[0])]))
        return cls(
            np.concatenate(arrays) if arrays else np.empty(0, np.int32),
            np.cumsum([0, *(len(array) for array in arrays)], dtype=np.int64),
        )

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        row %= len(self)
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        return f"Ragged({len(self):,} rows, {len(self.values):,} values)"

    def take(self, rows: NDArray[np.integer]) -> Ragged:
        """The given rows, in the given order."""
        return Ragged(*take_slices(self.values, self.offsets[:-1][rows], self.lengths[rows]))

    def last(self, length: int) -> Ragged:
        """The last `length` values of every row."""
        kept = np.minimum(self.lengths, length)
        return Ragged(*take_slices(self.values, self.offsets[1:] - kept, kept))

    def split_at(self, cuts: NDArray[np.int64]) -> tuple[Ragged, Ragged]:
        """The first `cuts[i]` values of every row i, and the rest."""
        starts = self.offsets[:-1]
        tail = take_slices(self.values, starts + cuts, self.lengths - cuts)
        return Ragged(*take_slices(self.values, starts, cuts)), Ragged(*tail)


def take_slices(
    values: NDArray[_T], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[_T], NDArray[np.int64]]:
    """The slices `values[starts[i] : starts[i] + lengths[i]]` back to back, and their offsets."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if offsets[-1] <= BLOCK:
        return values[np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])], offsets
    # Row by row in blocks, so that the numbers of the elements need no array as long as the result.
    taken = scratch_array(int(offsets[-1]), values.dtype)
    cuts = np.searchsorted(offsets, np.arange(BLOCK, offsets[-1] + BLOCK, BLOCK))
    begin = 0
    for end in np.minimum(cuts, len(lengths)).tolist():
        low, high = offsets[begin], offsets[end]
        moved = np.repeat(starts[begin:end] - offsets[begin:end], lengths[begin:end])
        taken[low:high] = values[moved + np.arange(low, high)]
        begin = end
    return taken, offsets
