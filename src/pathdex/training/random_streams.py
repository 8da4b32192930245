"""Random numbers by name: every draw depends on the seed and on where it is made, never on what was drawn before.

A resumed training needs no generator state, and an additional draw in one place changes no other.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """The draws of an epoch. The numbers enter the seed, so changing one changes every trained model."""

    ORDER = 0
    """Where long sequences are cut into windows, or the order of the samples."""
    BATCHES = 1
    STEP = 2
    """Negatives and dropout of one step."""
    ASSIGNMENT = 3
    """The order in which coordinate descent visits items."""
    SCORE_SAMPLES = 4
    PROBE_QUERIES = 5
    """Positions that stand in for queries when candidates are counted."""
    TARGETS = 6
    SCORE_TARGETS = 7
    """Which of the next items a history predicts, for gradient steps and for scores."""


class RandomStreams:
    """The generators of one phase of a training."""

    def __init__(self, seed: int, phase: int) -> None:
        self.seed, self.phase = seed, phase

    def generator(self, stream: Stream, epoch: int, *key: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.phase, epoch, int(stream), *key])
