"""Interests drift around lasting ones, and stay where there is no drift."""

from __future__ import annotations

import numpy as np

from pathdex.experiments.simulate.audience import DRIFT, Audience

SHARES = np.full(5, 0.2)
EVERYONE = np.arange(2000)


def planted(drift: float) -> Audience:
    return Audience(np.random.default_rng(0), 2000, SHARES, drift=drift, half_life=60.0)


def test_interests_are_shares() -> None:
    interests = planted(1.0).interests(EVERYONE)
    assert interests.shape == (2000, 5)
    assert np.allclose(interests.sum(axis=1), 1)
    assert len(planted(1.0)) == 2000


def test_without_drift_nothing_changes() -> None:
    audience = planted(0.0)
    before = audience.interests(EVERYONE)
    audience.advance(600, np.random.default_rng(1))
    assert np.array_equal(audience.interests(EVERYONE), before)


def test_half_of_a_passing_interest_is_left_after_its_half_life() -> None:
    audience = planted(1.0)
    before = audience.passing.copy()
    audience.advance(60, np.random.default_rng(1))
    slope = (before * audience.passing).sum() / (before**2).sum()
    assert abs(slope - 0.5) < 0.03
    assert abs(audience.passing.std() - DRIFT) < 0.05


def test_lasting_interests_stay() -> None:
    audience = planted(1.0)
    before = audience.lasting.copy()
    audience.advance(1e6, np.random.default_rng(1))
    assert np.array_equal(audience.lasting, before)
