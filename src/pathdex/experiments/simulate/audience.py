"""Users and their interests, which drift."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from pathdex.experiments.simulate.creators import STYLE_DIM, Floats, Integers

SPREAD = 1.6
"""Standard deviation of a user's lasting interest in a topic, as a logit."""
DRIFT = 1.2
"""Standard deviation of a user's passing interest in a topic, as a logit."""
TREND = 0.8
"""The same of all users together: a topic is a trend for a while."""


class Audience:
    """A user's interest in a topic is a softmax over three parts: a lasting one, a passing one, and the trend.

    Passing interests and trends follow an Ornstein-Uhlenbeck process: they wander, and return to 0 with a half-life.
    """

    def __init__(
        self, generator: Generator, users: int, topic_shares: Floats, *, drift: float, half_life: float
    ) -> None:
        """`drift` scales passing interests and trends; `half_life` is in seconds."""
        topics = len(topic_shares)
        self.lasting = np.log(topic_shares) + generator.normal(0, SPREAD, (users, topics))
        self.passing = drift * DRIFT * generator.standard_normal((users, topics), np.float32)
        self.trend = drift * TREND * generator.standard_normal(topics)
        self.taste = generator.normal(0, 1.0, (users, STYLE_DIM))
        self.activity = np.exp(generator.normal(0, 0.5, users))
        self._drift, self._half_life = drift, half_life

    def __len__(self) -> int:
        return len(self.lasting)

    def advance(self, seconds: float, generator: Generator) -> None:
        """Let the interests drift for so long."""
        kept = 2.0 ** (-seconds / self._half_life)
        noise = self._drift * np.sqrt(1 - kept**2)
        # Drawn in any case, so that the rest of the simulation does not depend on the drift.
        passing = generator.standard_normal(self.passing.shape, np.float32)
        trend = generator.standard_normal(len(self.trend))
        self.passing = np.float32(kept) * self.passing + np.float32(noise * DRIFT) * passing
        self.trend = kept * self.trend + noise * TREND * trend

    def interests(self, users: Integers) -> Floats:
        """(user, topic) shares that sum to 1."""
        logits = self.lasting[users] + self.passing[users] + self.trend
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares: Floats = weights / weights.sum(axis=1, keepdims=True)
        return shares
