"""The figures of a finished simulation equal those computed from its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pathdex.evaluation.ab_test import Estimate
from pathdex.experiments.simulate.impressions import Impressions
from pathdex.experiments.simulate.metrics import RATIOS, estimate_of, measure
from pathdex.experiments.simulate.simulation import Outcome
from tests.experiments.simulate.conftest import TINY


@pytest.fixture(scope="module")
def figures(outcome: Outcome) -> dict[str, Any]:
    return measure(outcome)


def rows_of(outcome: Outcome, name: str) -> Impressions:
    shown, place = outcome.impressions, list(outcome.arms).index(name)
    return shown.where((shown.time >= TINY.warmup_seconds) & shown.chosen & (shown.arm == place))


def arm_of(figures: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in figures["arms"] if row["arm"] == name)
    return found


def test_ratios_by_hand(outcome: Outcome, figures: dict[str, Any]) -> None:
    rows, arm = rows_of(outcome, "streaming"), arm_of(figures, "streaming")
    uploaded, creator = outcome.platform.videos.uploaded, outcome.platform.videos.creator
    assert arm["finish_rate"]["value"] == pytest.approx(rows.finished.mean())
    assert arm["view_seconds"]["value"] == pytest.approx(rows.seconds.sum() / len(np.unique(rows.page)))
    assert arm["planted_finish_rate"]["value"] == pytest.approx(rows.expected.mean())
    assert arm["new_share"]["value"] == pytest.approx((uploaded[rows.video] >= TINY.warmup_seconds).mean())
    assert arm["small_share"]["value"] == pytest.approx(outcome.platform.creators.small[creator[rows.video]].mean())
    assert (arm["users"], arm["shown"]) == (len(np.unique(rows.user)), len(rows))
    for metric in RATIOS:
        found = estimate_of(arm[metric])
        assert found.low <= found.value <= found.high  # type: ignore[operator]


def test_reach_by_hand(outcome: Outcome, figures: dict[str, Any]) -> None:
    videos = set(rows_of(outcome, "random").video.tolist())
    arm = arm_of(figures, "random")
    new = [video for video in videos if outcome.platform.videos.uploaded[video] >= TINY.warmup_seconds]
    assert arm["videos_shown"] == len(videos)
    assert arm["new_videos_shown"]["value"] == pytest.approx(len(new) / figures["platform"]["new_videos"])
    assert arm["creators_shown"] == len({int(outcome.platform.videos.creator[video]) for video in videos})


def test_the_frozen_arm_has_no_new_videos(figures: dict[str, Any]) -> None:
    assert arm_of(figures, "frozen")["new_share"]["value"] == 0
    assert {row["reached"] for row in figures["waiting"] if row["arm"] == "frozen"} == {0}


def test_differences_are_relative_to_the_baseline(figures: dict[str, Any]) -> None:
    rates = {row["arm"]: row["finish_rate"]["value"] for row in figures["arms"]}
    found = {row["arm"]: row for row in figures["differences"] if row["metric"] == "finish_rate"}
    assert set(found) == set(rates) - {"ffm-hnsw"}
    assert found["oracle"]["value"] == pytest.approx(rates["oracle"] / rates["ffm-hnsw"] - 1)
    assert found["oracle"]["p_holm"] < 0.05


def test_the_warmup_is_an_a_a_test(figures: dict[str, Any]) -> None:
    assert [row["arm"] for row in figures["a_a_test"]] == [
        row["arm"] for row in figures["arms"] if row["arm"] != "ffm-hnsw"
    ]
    inside = [row["low"] <= 0 <= row["high"] for row in figures["a_a_test"]]
    assert sum(inside) >= len(inside) - 1


def test_waiting_by_hand(outcome: Outcome, figures: dict[str, Any]) -> None:
    rows = rows_of(outcome, "oracle")
    uploaded = outcome.platform.videos.uploaded
    shown = {video for video in rows.video.tolist() if uploaded[video] >= TINY.warmup_seconds}
    [row] = [one for one in figures["waiting"] if (one["arm"], one["until"]) == ("oracle", "shown")]
    assert row["reached"] == len(shown)
    assert row["videos"] == int((uploaded >= TINY.warmup_seconds).sum())
    assert [minute for minute, _ in row["curve"]] == sorted(minute for minute, _ in row["curve"])


def test_builds_are_counted(figures: dict[str, Any]) -> None:
    """Every 2 of 6 minutes, and one at the beginning; streaming has one, and figures per minute."""
    assert [build["began"] for build in arm_of(figures, "ffm-hnsw")["builds"]] == [240.0, 360.0, 480.0]
    streaming = arm_of(figures, "streaming")
    assert streaming["seconds_per_minute"]["value"] > 0
    assert streaming["index_seconds"]["value"] == 0.5
    assert arm_of(figures, "oracle")["build_seconds"]["value"] is None


def test_the_timeline_covers_the_experiment(outcome: Outcome, figures: dict[str, Any]) -> None:
    timeline, rows = figures["timeline"], rows_of(outcome, "oracle")
    assert timeline["minutes"] == [1.5, 4.5]
    early = rows.where(rows.time < TINY.warmup_seconds + 180)
    assert timeline["finish_rate"]["oracle"][0] == pytest.approx(early.finished.mean())


def test_estimates_from_json() -> None:
    assert estimate_of({"value": 1.0, "low": None, "high": 2.0}) == Estimate(1.0, None, 2.0)
