"""Learning rate schedules."""

from __future__ import annotations

import math


def cosine_rate(done: float) -> float:
    """Cosine decay of the learning rate from 1 to 0.02, for progress `done` in [0, 1]."""
    return 0.02 + 0.49 * (1 + math.cos(math.pi * min(max(done, 0.0), 1.0)))
