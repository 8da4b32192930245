"""Named random streams: a draw depends only on the seed and its position, never on earlier draws.

So a resumed training needs no generator state, and adding a draw in one place does not change the others.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """The draws of an epoch. The values are part of the seed: changing one changes every trained model."""

    ORDER = 0
    """Cuts of long sequences into windows, or the order of samples."""
    BATCHES = 1
    STEP = 2
    """Negatives and dropout of one step."""
    ASSIGNMENT = 3
    """Order in which coordinate descent visits items."""
    SCORE_SAMPLES = 4
    PROBE_QUERIES = 5
    """Positions used as sample queries to count candidates."""
    TARGETS = 6
    SCORE_TARGETS = 7
    """Which of the next items a history predicts (`next_items`), for gradient steps and for scores."""


class RandomStreams:
    """Random generators of one phase."""

    def __init__(self, seed: int, phase: int) -> None:
        self.seed, self.phase = seed, phase

    def generator(self, stream: Stream, epoch: int, *key: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.phase, epoch, int(stream), *key])
