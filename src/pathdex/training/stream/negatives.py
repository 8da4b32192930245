"""Negatives from a catalogue that changes with every batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pathdex.training.negatives import Negatives


class StreamNegatives:
    """Uniform draws from the items of a stream, corrected by their probability of being drawn at least once."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.used = np.empty(0, np.bool_)
        """(slot,) whether an item is in the slot."""

    def draw(self, targets: NDArray[np.int64], generator: np.random.Generator) -> Negatives:
        """Distinct items, ascending. The same for all samples of a batch."""
        slots = len(self.used)
        if self.number >= slots:
            items = np.flatnonzero(self.used)
            return Negatives(items, np.zeros(len(items), np.float32))
        items = np.unique(generator.integers(0, slots, self.number))
        items = items[self.used[items]]
        log_inclusion = np.log(-np.expm1(self.number * np.log1p(-1 / slots)))
        return Negatives(items, np.full(len(items), log_inclusion, np.float32))
