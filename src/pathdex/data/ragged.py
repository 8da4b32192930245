"""Rows of different lengths in two flat arrays; every set of histories has this form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Ragged:
    """Row i is `values[offsets[i]:offsets[i + 1]]`."""

    values: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def from_rows(cls, rows: Iterable[Iterable[int]]) -> Ragged:
        arrays = [np.asarray(row if isinstance(row, np.ndarray) else list(row), np.int32) for row in rows]
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
        return Ragged(self.values[self.positions(rows)], np.concatenate([[0], np.cumsum(self.lengths[rows])]))

    def positions(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """The positions in `values` of the given rows, for indexing parallel arrays."""
        lengths = self.lengths[rows]
        starts = np.repeat(self.offsets[:-1][rows] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        return starts + np.arange(int(lengths.sum()), dtype=np.int64)

    def last(self, length: int) -> Ragged:
        """The last `length` values of every row."""
        kept = np.minimum(self.lengths, length)
        return _slices(self.values, self.offsets[1:] - kept, kept)

    def split_at(self, cuts: NDArray[np.int64]) -> tuple[Ragged, Ragged]:
        """The first `cuts[i]` values of every row i, and the rest."""
        head = _slices(self.values, self.offsets[:-1], cuts)
        tail = _slices(self.values, self.offsets[:-1] + cuts, self.lengths - cuts)
        return head, tail


def _slices(values: NDArray[np.int32], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Ragged:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    index = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
    return Ragged(values[index], offsets)
