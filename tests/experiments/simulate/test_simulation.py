"""The loop: the seed decides everything, arms do not influence the traffic, nobody sees a video twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pathdex.data.event_sources import open_source
from pathdex.experiments.simulate.platform import Platform
from pathdex.experiments.simulate.simulation import Outcome, simulate, streams_of
from pathdex.experiments.simulate.traffic import buckets
from tests.experiments.simulate.conftest import TINY, run_small, with_changes

SHORT = with_changes(minutes=3)


def same(first: Outcome, second: Outcome) -> bool:
    columns = vars(first.impressions)
    return all(np.array_equal(column, getattr(second.impressions, name)) for name, column in columns.items())


def test_the_same_seed_gives_the_same_result(tmp_path: Path) -> None:
    arms = ["streaming", "retrained"]
    first, again = (run_small(tmp_path / name, SHORT, arms) for name in ("first", "again"))
    assert same(first, again)
    assert not same(first, run_small(tmp_path / "other", with_changes(minutes=3, seed=1), arms))


def test_other_arms_get_the_same_traffic(tmp_path: Path) -> None:
    first = run_small(tmp_path / "first", SHORT, ["oracle", "random"]).impressions
    second = run_small(tmp_path / "second", SHORT, ["random", "popularity"]).impressions
    assert np.array_equal(first.time, second.time)
    assert np.array_equal(first.user, second.user)
    before = first.time < SHORT.warmup_seconds
    assert np.array_equal(first.video[before], second.video[before])


def test_nobody_is_shown_a_video_twice(outcome: Outcome) -> None:
    shown = outcome.impressions
    pairs = np.column_stack([shown.user, shown.video])
    assert len(np.unique(pairs, axis=0)) == len(shown)


def test_nobody_is_shown_a_video_before_its_upload(outcome: Outcome) -> None:
    shown = outcome.impressions
    assert (outcome.platform.videos.uploaded[shown.video] <= shown.time).all()


def test_users_keep_their_arm(outcome: Outcome) -> None:
    shown = outcome.impressions
    assert np.array_equal(shown.arm, buckets(TINY.users, len(outcome.arms), TINY.seed)[shown.user])


def test_what_is_finished_is_logged(tmp_path: Path) -> None:
    outcome = run_small(tmp_path, SHORT, ["oracle", "random"])
    shown = outcome.impressions
    source = open_source(tmp_path / "events.jsonl")
    source.seek(None)
    batch = source.read(10**6, 1.0)
    source.close()
    assert batch is not None
    logged = sorted((event.user, event.item, event.time) for event in batch.events)
    expected = zip(shown.user, shown.video, shown.time, strict=True)
    assert logged == sorted(row for row, done in zip(expected, shown.finished, strict=True) if done)
    assert outcome.events == len(logged)


def test_finishes_follow_the_planted_probabilities(outcome: Outcome) -> None:
    shown = outcome.impressions
    noise = np.sqrt((shown.expected * (1 - shown.expected)).sum()) / len(shown)
    assert abs(shown.finished.mean() - shown.expected.mean()) < 4 * noise


def test_isolated_arms_learn_from_their_own_users(tmp_path: Path) -> None:
    options = with_changes(minutes=3, isolated=True)
    outcome = run_small(tmp_path, options, ["streaming", "oracle"])
    shown = outcome.impressions
    experiment = shown.time >= options.warmup_seconds
    last = shown.time == shown.time.max()
    own = shown.finished & experiment & ~last & (shown.arm == 0)
    arm = outcome.arms["streaming"]
    assert arm.online.state.counters.learned == own.sum()  # type: ignore[attr-defined]
    assert streams_of(["a", "b"], options) == ["a", "b"]
    assert streams_of(["a", "b"], TINY) == ["shared"]


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    from pathdex.experiments.simulate.arm_registry import make_arms
    from pathdex.experiments.simulate.broker import EventLog

    seen: list[tuple[float, float, str]] = []
    platform = Platform(SHORT)
    arms = make_arms(["oracle", "random"], SHORT, platform)
    log = EventLog(str(tmp_path / "events.jsonl"), ["shared"])
    simulate(SHORT, platform, arms, log, progress=lambda *step: seen.append(step))
    assert seen[0] == (0.0, 420.0, "warm-up")
    assert (240.0, 420.0, "training oracle") in seen
    assert seen[-1] == (420.0, 420.0, "the report")
