"""Watching and finishing depend on appeal and position as planted."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.experiments.simulate.behaviour import finish_probability, respond, watch_probability

ZEROS = np.zeros(4)
PLACES = np.arange(4)


def test_probabilities_by_hand() -> None:
    started = 1 / (1 + np.exp(-1.0))
    assert watch_probability(ZEROS, PLACES) == pytest.approx([started * 0.9**place for place in range(4)])
    assert finish_probability(ZEROS, PLACES) == pytest.approx([0.5 * started * 0.9**place for place in range(4)])


def test_finishing_falls_with_position_and_rises_with_appeal() -> None:
    assert (np.diff(finish_probability(ZEROS, PLACES)) < 0).all()
    assert (np.diff(finish_probability(np.arange(4.0), np.zeros(4, np.int64))) > 0).all()


def test_responses_have_the_planted_rates() -> None:
    uniforms = np.random.default_rng(0).random((200_000, 3))
    appeal, position = np.full(200_000, 0.3), np.full(200_000, 2)
    responses = respond(appeal, position, np.full(200_000, 10.0), uniforms)
    assert abs(responses.watched.mean() - watch_probability(appeal, position)[0]) < 0.005
    assert abs(responses.finished.mean() - finish_probability(appeal, position)[0]) < 0.005


def test_view_time_by_hand() -> None:
    uniforms = np.array([[0.0, 0.0, 0.5], [0.0, 0.9, 0.25], [0.999, 0.0, 0.5]])
    responses = respond(np.zeros(3), np.zeros(3, np.int64), np.full(3, 12.0), uniforms)
    assert responses.finished.tolist() == [True, False, False]
    assert responses.seconds == pytest.approx([12.0, 3.0, 0.0])  # finished; 0.25^(1 / (0.5 + 0.5)) of it; skipped


def test_view_time_follows_interest() -> None:
    uniforms = np.random.default_rng(0).random((20_000, 3))
    places, durations = np.zeros(20_000, np.int64), np.full(20_000, 10.0)
    low, high = (respond(np.full(20_000, appeal), places, durations, uniforms).seconds.mean() for appeal in (-1.0, 1.0))
    assert high > low
