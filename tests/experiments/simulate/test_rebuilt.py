"""Rebuilt arms: when they train, on what, and when the new model is served."""

from __future__ import annotations

import pytest

from pathdex.data.events import Event
from pathdex.data.interactions import Interactions
from pathdex.experiments.simulate.rebuilt import (
    RebuiltArm,
    fit_deep_retrieval,
    fit_ffm_hnsw,
    fit_popularity,
    interactions,
    recent,
)
from pathdex.recommenders.base import Recommender
from tests.experiments.simulate.conftest import TINY, requests_of


def arm_of(seen: list[Interactions]) -> RebuiltArm:
    def fit(data: Interactions) -> tuple[Recommender, float]:
        seen.append(data)
        return fit_popularity(data)

    return RebuiltArm(fit, every=100.0, delay=30.0, window=150.0)


def test_a_build_is_served_after_its_delay() -> None:
    arm = arm_of([])
    arm.start([Event(1, 7, 0.0)], 0.0)
    served = {}
    for now in range(10, 150, 10):
        arm.learn([Event(now, 8, float(now)), Event(1000 + now, 8, float(now))], float(now))
        served[now] = int(arm.pages(requests_of([0], float(now)), 1)[0, 0])
    assert [now for now, video in served.items() if video == 8] == [130, 140]
    assert [build.began for build in arm.builds] == [0.0, 100.0]


def test_a_build_uses_the_events_of_its_window() -> None:
    seen: list[Interactions] = []
    arm = arm_of(seen)
    arm.start([Event(1, 7, 0.0), Event(2, 7, 10.0)], 20.0)
    arm.learn([Event(3, 8, 120.0)], 120.0)
    arm.learn([Event(4, 9, 220.0)], 220.0)
    assert [one.num_interactions for one in seen] == [2, 3, 2]
    assert 7 not in seen[2].items


def test_without_events_the_old_model_stays() -> None:
    arm = arm_of([])
    arm.start([Event(1, 7, 0.0)], 0.0)
    arm.learn([], 500.0)
    assert len(arm.builds) == 1
    assert arm.pages(requests_of([0], 500.0), 1).tolist() == [[7]]


def test_events_as_training_data() -> None:
    data = interactions([Event(1, 5, 2.0), Event(1, 6, 1.0), Event(2, 5, 3.0)])
    assert data.items.ids(data.sequences[0]) == [6, 5]
    assert recent([Event(1, 5, 2.0), Event(1, 6, 1.0)], 1.5) == [Event(1, 5, 2.0)]


def test_fits_measure_their_index() -> None:
    pytest.importorskip("usearch")
    data = interactions([Event(user, (user + step) % 20, float(step)) for user in range(40) for step in range(6)])
    for fit in (fit_deep_retrieval(TINY, 1), fit_ffm_hnsw(TINY, 1)):
        model, seconds = fit(data)
        assert len(model.items) == 20
        assert 0 < seconds < 60
