"""Learning rates over time."""

from __future__ import annotations

import math


def cosine_rate(done: float) -> float:
    """The share of the learning rate left after `done` of 1: half a cosine from 1 down to 2 percent."""
    return 0.02 + 0.49 * (1 + math.cos(math.pi * min(max(done, 0.0), 1.0)))
