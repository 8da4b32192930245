"""Arrays with one row per item that grow with the catalogue."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FIRST_CAPACITY = 1024


class GrowingArray:
    """An array whose number of rows can change. Memory doubles when it is full, so growth costs O(1) per row."""

    def __init__(self, row_shape: tuple[int, ...], dtype: Any, fill: float = 0) -> None:
        self._memory = np.full((FIRST_CAPACITY, *row_shape), fill, dtype)
        self._fill, self._rows = fill, 0

    @property
    def values(self) -> NDArray[Any]:
        """The rows, as a view. Valid until the array grows."""
        return self._memory[: self._rows]

    def resize(self, rows: int) -> NDArray[Any]:
        """Change the number of rows; new ones have the fill value."""
        if rows > len(self._memory):
            memory = np.full((max(rows, 2 * len(self._memory)), *self._memory.shape[1:]), self._fill, self.dtype)
            memory[: self._rows] = self.values
            self._memory = memory
        self._memory[rows : self._rows] = self._fill
        self._rows = rows
        return self.values

    def load(self, values: NDArray[Any]) -> NDArray[Any]:
        """Replace all rows."""
        self.resize(len(values))[:] = values
        return self.values

    @property
    def dtype(self) -> Any:
        return self._memory.dtype

    @property
    def capacity(self) -> int:
        return len(self._memory)
