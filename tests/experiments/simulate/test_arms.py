"""What the arms know: everything, nothing, the warm-up, or all events so far."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.data.events import Event
from pathdex.experiments.simulate.arms import FirstModel, OracleArm, RandomArm, StreamingArm, recommend
from pathdex.experiments.simulate.platform import Platform
from pathdex.experiments.simulate.rebuilt import timed_fit
from pathdex.experiments.simulate.simulation import Outcome
from pathdex.experiments.simulate.traffic import NOTHING, Requests
from tests.experiments.simulate.conftest import TINY, fit_small, requests_of

EVENTS = [Event(user, (7 * user + step) % 40, float(step)) for step in range(12) for user in range(60)]


def first_model() -> FirstModel:
    fit = fit_small(TINY, 1)
    return FirstModel(lambda events, now: timed_fit(fit, events, now))


def test_the_oracle_shows_what_appeals_most() -> None:
    platform = Platform(TINY)
    page = OracleArm(platform).pages(requests_of([4], 30.0), 5)[0]
    count = platform.videos.count(30.0)
    appeal = platform.appeal(np.array([4]), np.arange(count)[None], 30.0)[0]
    assert page.tolist() == np.argsort(-appeal)[:5].tolist()


def test_the_random_arm_shows_what_there_is() -> None:
    platform = Platform(TINY)
    pages = RandomArm(platform, TINY).pages(requests_of(range(50), 30.0), 5)
    assert pages.max() < platform.videos.count(30.0)
    assert len(np.unique(pages)) > 80


def test_arms_that_begin_with_the_same_model_share_the_training() -> None:
    calls = []
    fit = fit_small(TINY, 1)

    def make(events: list[Event], now: float) -> object:
        calls.append(now)
        return timed_fit(fit, events, now)

    first = FirstModel(make)
    one, other = first.get(EVENTS, 5.0)[0], first.get(EVENTS, 5.0)[0]
    assert calls == [5.0]
    assert one is not other
    one.remove_items([0])
    assert 0 in other.items


def test_streaming_knows_a_new_video_after_one_event() -> None:
    arm = StreamingArm(first_model(), TINY)
    arm.start(EVENTS, 240.0)
    assert 1000 not in arm.model.items
    arm.learn([Event(3, 1000, 250.0)], 250.0)
    assert 1000 in arm.model.items
    assert 1000 in arm.pages(requests_of([5], 260.0), 41)
    assert arm.online.state.counters.learned == 1  # The warm-up only restores histories.
    assert arm.online.state.histories.tokens("3") != []


def test_unknown_videos_are_left_out_and_shown_ones_are_not_repeated() -> None:
    model, _ = first_model().get(EVENTS, 0.0)
    requests = Requests(np.array([0, 1]), [[3, 999], [999]], [[5, 999], list(range(38))], 0.0)
    pages = recommend(model, requests, 4)
    assert 5 not in pages[0]
    assert NOTHING not in pages[0]
    assert sorted(pages[1].tolist()) == [NOTHING, NOTHING, 38, 39]


@pytest.mark.parametrize("name", ["frozen", "oracle", "random"])
def test_some_arms_do_not_learn(outcome: Outcome, name: str) -> None:
    assert not outcome.arms[name].learns


def test_the_frozen_arm_never_shows_a_video_that_is_newer_than_its_training(outcome: Outcome) -> None:
    shown = outcome.impressions
    own = shown.where((shown.time >= TINY.warmup_seconds) & shown.chosen)
    frozen = own.video[own.arm == list(outcome.arms).index("frozen")]
    assert len(frozen) > 100
    assert outcome.platform.videos.uploaded[frozen].max() < TINY.warmup_seconds
    streaming = own.video[own.arm == list(outcome.arms).index("streaming")]
    assert outcome.platform.videos.uploaded[streaming].max() > TINY.warmup_seconds


def test_the_oracle_beats_all_and_random_is_last(outcome: Outcome) -> None:
    shown = outcome.impressions
    own = shown.where((shown.time >= TINY.warmup_seconds) & shown.chosen)
    rates = {name: own.expected[own.arm == place].mean() for place, name in enumerate(outcome.arms)}
    assert max(rates, key=lambda name: rates[name]) == "oracle"
    assert min(rates, key=lambda name: rates[name]) == "random"
