"""Which slots changed since a reader last looked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pathdex.training.stream.growing import GrowingArray


class ChangedSlots:
    """Marks of changed slots, one set per reader, such as a publisher and a checkpoint.

    A reader clears its marks once what it wrote is safe, so a failed write loses none.
    """

    def __init__(self, *readers: str) -> None:
        self._marks = {reader: GrowingArray((), np.bool_) for reader in readers}

    def mark(self, slots: ArrayLike) -> None:
        """These slots have changed."""
        codes = np.asarray(slots, np.int64)
        if not codes.size:
            return
        size = int(codes.max()) + 1
        for marks in self._marks.values():
            if size > len(marks.values):
                marks.resize(size)
            marks.values[codes] = True

    def pending(self, reader: str) -> NDArray[np.int64]:
        """The slots that changed since the reader last cleared its marks, ascending."""
        return np.flatnonzero(self._marks[reader].values)

    def clear(self, reader: str) -> None:
        """The reader has seen all changes."""
        self._marks[reader].values[:] = False
