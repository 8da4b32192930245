"""Sentences follow the figures."""

from __future__ import annotations

from typing import Any

import pytest

from pathdex.experiments.simulate.findings import findings, signed


def estimate(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "low": low, "high": high}


def results(low: float, high: float, *, small: tuple[float, float] = (0.1, 0.3)) -> dict[str, Any]:
    seconds = {"value": 1.5, "low": None, "high": None}
    arm = {
        "finish_rate": estimate(0.3, 0.29, 0.31),
        "small_creators_shown": estimate(0.8, 0.7, 0.9),
        "index_seconds": seconds,
    }
    frozen = {**arm, "finish_rate": estimate(0.2, 0.19, 0.21)}
    middle = (low + high) / 2
    return {
        "arms": [{"arm": "streaming", **arm}, {"arm": "frozen", **frozen}, {"arm": "ffm-hnsw", **arm}],
        "differences": [
            {"arm": "streaming", "metric": "finish_rate", **estimate(middle, low, high)},
            {"arm": "streaming", "metric": "small_share", **estimate(0.2, *small)},
        ],
        "waiting": [{"arm": "streaming", "until": "shown", "videos": 9, "within_5": estimate(0.4, 0.3, 0.5)}],
    }


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.01, 0.05, "the direction of the paper's +3.0% holds, and its size is within the interval"),
        (0.10, 0.20, "the direction of the paper's +3.0% holds, with a larger size"),
        (0.01, 0.02, "the direction of the paper's +3.0% holds."),
        (-0.01, 0.04, "there is no clear difference"),
        (-0.05, -0.01, "the paper's +3.0% does not hold"),
    ],
)
def test_the_verdict_on_the_finish_rate(low: float, high: float, verdict: str) -> None:
    assert verdict in findings(results(low, high))[0]


@pytest.mark.parametrize(
    ("small", "verdict"),
    [
        ((0.1, 0.3), ": more exposure"),
        ((-0.1, 0.3), ": neither more nor less exposure"),
        ((-0.3, -0.1), ": less exposure"),
    ],
)
def test_the_verdict_on_small_creators(small: tuple[float, float], verdict: str) -> None:
    assert verdict in findings(results(0.1, 0.2, small=small))[1]


def test_learning_waiting_and_building() -> None:
    sentences = findings(results(0.1, 0.2))
    assert "changes the finish rate by +50% against the same model frozen." in sentences[2]
    assert sentences[3] == "**New videos** shown within 5 minutes of their upload: `streaming` 40%."
    assert "the HNSW graph 1.50 s" in sentences[4]


def test_without_the_baseline_nothing_is_said_about_the_paper() -> None:
    given = results(0.1, 0.2)
    given["arms"] = given["arms"][:1]
    assert len(findings(given)) == 1


def test_signed_differences() -> None:
    assert signed(estimate(0.031, -0.004, 0.07)) == "+3.1% (-0.4 to +7.0)"
