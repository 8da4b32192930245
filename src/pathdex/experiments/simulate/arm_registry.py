"""The arms by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pathdex.experiments.simulate.arms import Arm, FirstModel, FrozenArm, OracleArm, RandomArm, StreamingArm
from pathdex.experiments.simulate.options import BASELINE, SimulationOptions, check_arms
from pathdex.experiments.simulate.platform import Platform
from pathdex.experiments.simulate.rebuilt import (
    RECENT_SECONDS,
    REFRESH_SECONDS,
    RebuiltArm,
    fit_deep_retrieval,
    fit_ffm_hnsw,
    fit_popularity,
    timed_fit,
)
from pathdex.system import USEARCH

DESCRIPTIONS: Mapping[str, str] = {
    "streaming": "Deep Retrieval that learns from every event once, served at the next tick",
    "frozen": "the same first model, trained on the warm-up only",
    "retrained": "Deep Retrieval trained again every {retrain_minutes:g} minutes, served {build_minutes:g} later",
    BASELINE: "FFM + HNSW rebuilt every {retrain_minutes:g} minutes, served {build_minutes:g} later: the baseline",
    "popularity": "the videos finished most often within ten minutes, counted every minute",
    "oracle": "knows the planted interests",
    "random": "any video",
}


def make_arms(
    names: Sequence[str], options: SimulationOptions, platform: Platform, *, threads: int | None = None
) -> dict[str, Arm]:
    """Unstarted arms, in the given order. Raises for unknown names and for packages that are missing."""
    names = check_arms(names)
    if BASELINE in names:
        USEARCH.require()
    fit = fit_deep_retrieval(options, threads)
    first = FirstModel(lambda events, now: timed_fit(fit, events, now))
    schedule: dict[str, Any] = {
        "every": 60 * options.retrain_minutes,
        "delay": 60 * options.build_minutes,
        "window": 60 * options.train_minutes,
    }
    makers: dict[str, Callable[[], Arm]] = {
        "streaming": lambda: StreamingArm(first, options),
        "frozen": lambda: FrozenArm(first),
        "retrained": lambda: RebuiltArm(fit, first=first, **schedule),
        BASELINE: lambda: RebuiltArm(fit_ffm_hnsw(options, threads), **schedule),
        "popularity": lambda: RebuiltArm(fit_popularity, every=REFRESH_SECONDS, delay=0.0, window=RECENT_SECONDS),
        "oracle": lambda: OracleArm(platform),
        "random": lambda: RandomArm(platform, options),
    }
    return {name: makers[name]() for name in names}
