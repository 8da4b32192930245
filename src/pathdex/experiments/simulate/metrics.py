"""The figures of each arm, with 95% intervals, and the differences to the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.evaluation.ab_test import (
    Estimate,
    UserRatio,
    kaplan_meier,
    mean_of,
    relative_difference,
    share,
    user_ratio,
)
from pathdex.evaluation.significance import holm
from pathdex.experiments.simulate.arms import Arm
from pathdex.experiments.simulate.impressions import Impressions
from pathdex.experiments.simulate.options import BASELINE
from pathdex.experiments.simulate.simulation import Outcome

RATIOS = {
    "finish_rate": "videos finished per video shown",
    "view_seconds": "seconds watched per page",
    "planted_finish_rate": "mean planted probability of a finish",
    "new_share": "share of new videos among those shown",
    "small_share": "share of small creators' videos among those shown",
}
"""Metrics with intervals over users. New: uploaded since the experiment began."""
BIN_MINUTES = 5
WITHIN_MINUTES = (1, 5, 15)


def measure(outcome: Outcome) -> dict[str, Any]:
    """All figures of a simulation as JSON."""
    options, names = outcome.options, list(outcome.arms)
    begin = options.warmup_seconds
    shown = outcome.impressions.where(outcome.impressions.time >= begin)
    own = shown.where(shown.chosen)
    new = outcome.platform.videos.uploaded >= begin
    small = outcome.platform.creators.small[outcome.platform.videos.creator]
    ratios = {name: _ratios(own.where(own.arm == place), new, small, place) for place, name in enumerate(names)}
    arms = [
        {
            "arm": name,
            "users": len(np.unique(own.user[own.arm == place])),
            "pages": len(np.unique(own.page[own.arm == place])),
            "shown": int(np.count_nonzero(own.arm == place)),
            **{metric: ratio.estimate().to_dict() for metric, ratio in ratios[name].items()},
            **_reach(outcome, own.where(own.arm == place), new),
            **_build_figures(name, outcome.arms[name]),
        }
        for place, name in enumerate(names)
    ]
    return {
        "arms": arms,
        "differences": _differences(ratios) if BASELINE in ratios else [],
        "a_a_test": _a_a_test(outcome, names) if BASELINE in names else [],
        "timeline": _timeline(outcome, own, names),
        "waiting": _waiting(outcome, own, names, new),
        "platform": _platform_figures(outcome, new, small),
    }


def _ratios(rows: Impressions, new: NDArray[np.bool_], small: NDArray[np.bool_], seed: int) -> dict[str, UserRatio]:
    _, user = np.unique(rows.user, return_inverse=True)
    count = int(user.max()) + 1 if len(user) else 0

    def per_user(values: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(user, values.astype(np.float64), count).astype(np.float64)

    views = per_user(np.ones(len(rows)))
    first_of_page = np.zeros(len(rows))
    first_of_page[np.unique(rows.page, return_index=True)[1]] = 1
    pairs = {
        "finish_rate": (rows.finished, views),
        "view_seconds": (rows.seconds, per_user(first_of_page)),
        "planted_finish_rate": (rows.expected, views),
        "new_share": (new[rows.video], views),
        "small_share": (small[rows.video], views),
    }
    return {name: user_ratio(per_user(above), below, seed=seed) for name, (above, below) in pairs.items()}


def _differences(ratios: Mapping[str, Mapping[str, UserRatio]]) -> list[dict[str, Any]]:
    """Every arm against the baseline, corrected for the number of arms."""
    rows = []
    others = [name for name in ratios if name != BASELINE]
    for metric in RATIOS:
        found = [relative_difference(ratios[name][metric], ratios[BASELINE][metric]) for name in others]
        corrected = holm([p for _, p in found])
        rows += [
            {"arm": name, "metric": metric, **estimate.to_dict(), "p_holm": p}
            for name, (estimate, _), p in zip(others, found, corrected, strict=True)
        ]
    return rows


def _a_a_test(outcome: Outcome, names: list[str]) -> list[dict[str, Any]]:
    """The warm-up, where all buckets are treated the same: differences in finish rate are those of the users."""
    before = outcome.impressions.where(outcome.impressions.time < outcome.options.warmup_seconds)
    none = np.zeros(len(outcome.platform.videos), np.bool_)
    ratios = {
        name: _ratios(before.where(before.arm == place), none, none, place)["finish_rate"]
        for place, name in enumerate(names)
    }
    return [
        {"arm": name, **relative_difference(ratio, ratios[BASELINE])[0].to_dict()}
        for name, ratio in ratios.items()
        if name != BASELINE
    ]


def _reach(outcome: Outcome, rows: Impressions, new: NDArray[np.bool_]) -> dict[str, Any]:
    """How much of the catalogue and of the creators an arm shows at all."""
    creators, videos = outcome.platform.creators, outcome.platform.videos
    shown = np.unique(rows.video)
    owners = np.unique(videos.creator[shown])
    active = np.unique(videos.creator)
    small = creators.small
    return {
        "videos_shown": len(shown),
        "new_videos_shown": share(int(new[shown].sum()), int(new.sum())).to_dict(),
        "creators_shown": len(owners),
        "small_creators_shown": share(int(small[owners].sum()), int(small[active].sum())).to_dict(),
        "top_percent_share": _top_share(rows.video),
    }


def _top_share(videos: NDArray[np.int64]) -> float | None:
    """The share of the views that the 1% most shown of the shown videos get."""
    if not len(videos):
        return None
    counts = np.sort(np.unique(videos, return_counts=True)[1])[::-1]
    return float(counts[: max(1, len(counts) // 100)].sum() / counts.sum())


def _build_figures(name: str, arm: Arm) -> dict[str, Any]:
    """Measured seconds of building. The first model of `streaming` is followed by what it learns per minute."""
    builds = arm.builds[:1] if name == "streaming" else arm.builds
    online = arm.builds[1:] if name == "streaming" else []
    return {
        "builds": [build.to_dict() for build in arm.builds],
        "build_seconds": mean_of([build.seconds for build in builds]).to_dict(),
        "index_seconds": mean_of([build.index_seconds for build in builds]).to_dict(),
        "seconds_per_minute": mean_of([build.seconds for build in online]).to_dict(),
    }


def _timeline(outcome: Outcome, own: Impressions, names: list[str]) -> dict[str, Any]:
    """Figures by arm and time since the experiment began."""
    options = outcome.options
    minutes = max(1, min(BIN_MINUTES, options.minutes // 2))
    bins = -(-options.minutes // minutes)
    places = ((own.time - options.warmup_seconds) // (60 * minutes)).astype(int)
    ages = (own.time - outcome.platform.videos.uploaded[own.video]) / 60

    def by_bin(place: int, values: NDArray[Any]) -> list[float | None]:
        masks = [(own.arm == place) & (places == one) for one in range(bins)]
        return [float(values[mask].mean()) if mask.any() else None for mask in masks]

    return {
        "minutes": [minutes * (one + 0.5) for one in range(bins)],
        "finish_rate": {name: by_bin(place, own.finished) for place, name in enumerate(names)},
        "planted_finish_rate": {name: by_bin(place, own.expected) for place, name in enumerate(names)},
        "age_minutes": {name: by_bin(place, ages) for place, name in enumerate(names)},
    }


def _waiting(outcome: Outcome, own: Impressions, names: list[str], new: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """How long new videos wait until an arm shows them, and until its users finish one of them.

    The wait of a video that was not shown ends with the simulation: it is censored.
    """
    uploaded, end = outcome.platform.videos.uploaded, outcome.options.end_seconds
    rows = []
    for place, name in enumerate(names):
        arm = own.where(own.arm == place)
        for what, some in (("shown", arm), ("finished", arm.where(arm.finished))):
            first = np.full(len(uploaded), np.inf)
            np.minimum.at(first, some.video, some.time)
            waits = (np.minimum(first, end) - uploaded)[new] / 60
            curve = kaplan_meier(waits, np.isfinite(first)[new])
            steps = np.linspace(0, outcome.options.minutes, 61)
            rows.append(
                {
                    "arm": name,
                    "until": what,
                    "videos": curve.count,
                    "reached": curve.ended,
                    "first_tenth_minutes": curve.quantile(0.1).to_dict(),
                    "median_minutes": curve.quantile(0.5).to_dict(),
                    **{f"within_{m}": curve.ended_by(m).to_dict() for m in WITHIN_MINUTES},
                    "curve": [[float(step), curve.ended_by(float(step)).value] for step in steps],
                }
            )
    return rows


def _platform_figures(outcome: Outcome, new: NDArray[np.bool_], small: NDArray[np.bool_]) -> dict[str, Any]:
    shown = outcome.impressions
    before = shown.time < outcome.options.warmup_seconds
    slot = ~before & ~shown.chosen
    return {
        "videos": len(new),
        "new_videos": int(new.sum()),
        "small_share_of_new_videos": float(small[new].mean()) if new.any() else None,
        "small_share_of_videos": float(small.mean()),
        "events": outcome.events,
        "impressions": len(shown),
        "warmup_finish_rate": float(shown.finished[before].mean()),
        "new_slot_views": int(slot.sum()),
        "new_slot_finish_rate": float(shown.finished[slot].mean()) if slot.any() else None,
    }


def estimate_of(row: Mapping[str, Any]) -> Estimate:
    """An estimate from its JSON."""
    return Estimate(row["value"], row["low"], row["high"])
