"""Gather the user vectors that predict interactions.

The vectors of large data may be on disk. They are read for many samples at a time, in the order of their positions.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pathdex.kernels.gather import take_rows
from pathdex.storage.scratch import blocks, read_soon
from pathdex.training.sample_order import is_large

AHEAD_BYTES = 2**25
"""Vectors that are read at a time. Changes no result."""
SORTED = 2**14
"""Rows that the system is asked for at a time."""


class PositionVectors:
    """The user vector that predicts each interaction, gathered when it is needed."""

    def __init__(self, vectors: NDArray[np.float32], readers: NDArray[np.int64] | None = None) -> None:
        """The vectors before each interaction; `readers` are the numbers of those that predict it, or all its own."""
        self.vectors, self.readers = vectors, readers

    def __getitem__(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors (..., dim) of positions (...)."""
        flat = positions.ravel()
        found = np.empty((len(flat), self.vectors.shape[1]), np.float32)
        if is_large(len(self.vectors)):
            order = np.argsort(flat)
            for part in blocks(len(flat), SORTED):
                own = order[part]
                rows = self._rows(flat[own])
                read_soon(self.vectors, np.sort(rows))
                found[own] = self.vectors[rows]
        else:
            take_rows(self.vectors, self._rows(flat), found)
        return found.reshape(*positions.shape, found.shape[1])

    def _rows(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return positions if self.readers is None else self.readers[positions]

    def parts_ahead(self, positions: NDArray[np.int64], size: int) -> int:
        """How many parts of `size` rows of `positions` are read at a time."""
        if not is_large(len(self.vectors)):
            return 1
        per_row: int = positions[:1].size * self.vectors.shape[1] * self.vectors.itemsize
        return max(1, AHEAD_BYTES // max(1, per_row * size))

    def parts(self, positions: NDArray[np.int64], size: int) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Slices of `size` rows of `positions`, each with its vectors."""
        for block in blocks(len(positions), self.parts_ahead(positions, size) * size):
            found = self[positions[block]]
            for part in blocks(len(found), size):
                yield slice(block.start + part.start, block.start + part.stop), found[part]


class BatchVectors:
    """The vectors of numbered batches of an order, read ahead for those that follow."""

    def __init__(self, vectors: PositionVectors, order: NDArray[np.int64], batch_size: int) -> None:
        self.vectors, self.order, self.batch_size = vectors, order, batch_size
        self.ahead = vectors.parts_ahead(order, batch_size)
        self._group, self._found = -1, np.empty((0, 0), np.float32)

    def __getitem__(self, batch: int) -> NDArray[np.float32]:
        group, place = divmod(batch, self.ahead)
        size = self.batch_size
        if group != self._group:
            self._found = np.empty((0, 0), np.float32)  # Frees the last group first.
            self._found = self.vectors[self.order[group * self.ahead * size : (group + 1) * self.ahead * size]]
            self._group = group
        return self._found[place * size : (place + 1) * size]
