"""What a simulation is: the size of the platform, how fast it changes, the traffic and the arms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pathdex.errors import ConfigError, Problem, did_you_mean
from pathdex.parameters import check_fields, from_keywords, parameter

BASELINE = "ffm-hnsw"
"""The paper's baseline: other arms are compared with it."""
DEFAULT_ARMS = ("streaming", "frozen", "retrained", BASELINE, "popularity")
ARM_NAMES = (*DEFAULT_ARMS, "oracle", "random")
"""All arms. `oracle` knows the interests, `random` knows nothing: the two ends of the scale."""


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """Options of a simulation. Times are simulated minutes, unless the name says seconds."""

    users: int = parameter(4000, "users of the platform", low=10)
    creators: int = parameter(600, "creators; few have a large audience", low=5)
    videos: int = parameter(2000, "videos at the beginning", low=50)
    uploads_per_minute: float = parameter(60.0, "new videos per minute", low=0.0, high=60_000.0)
    requests_per_minute: int = parameter(1500, "pages that users ask for, per minute", low=6)
    page_size: int = parameter(6, "videos on a page", low=2, high=100)
    new_slot: float = parameter(
        0.5, "share of the pages whose last video is a new upload that the user found, in all arms", low=0.0, high=1.0
    )
    topics: int = parameter(32, "planted topics", low=2, high=1000)
    drift: float = parameter(1.0, "strength of the drift of interests; 0: they never change", low=0.0, high=10.0)
    drift_half_life: float = parameter(30.0, "minutes after which half of a changed interest is gone", above=0.0)
    appeal_half_life: float = parameter(40.0, "minutes after which a video has lost half of its appeal", above=0.0)
    warmup_minutes: int = parameter(30, "minutes before the experiment, without recommendations", low=1)
    minutes: int = parameter(60, "minutes of the experiment", low=1)
    retrain_minutes: float = parameter(15.0, "minutes between two builds of retrained and ffm-hnsw", above=0.0)
    build_minutes: float = parameter(5.0, "minutes until a new build is served", low=0.0)
    train_minutes: float = parameter(30.0, "a build uses the events of so many minutes; items without any are gone")
    tick_seconds: int = parameter(10, "seconds per step: users ask, events are logged, arms learn", low=1, high=60)
    isolated: bool = parameter(False, "each arm learns from the events of its own users only")
    seed: int = parameter(0, "random seed", low=0)

    def __post_init__(self) -> None:
        check_fields(self, self._cross_checks)

    def _cross_checks(self) -> list[Problem]:
        problems = []
        if self.build_minutes > self.retrain_minutes:
            rule = f"must be at most retrain_minutes={self.retrain_minutes:g}, or builds pile up"
            problems.append(Problem(rule, "build_minutes", self.build_minutes, "build faster, or less often"))
        if self.train_minutes < self.warmup_minutes:
            rule = f"must be at least warmup_minutes={self.warmup_minutes}, or the first model lacks data"
            problems.append(Problem(rule, "train_minutes", self.train_minutes, "raise it"))
        if 60 % self.tick_seconds:
            problems.append(Problem("must divide 60", "tick_seconds", self.tick_seconds, "take 5, 10, 20 or 30"))
        if self.requests_per_tick < 1:
            rule = "less than one page per tick"
            problems.append(Problem(rule, "requests_per_minute", self.requests_per_minute, "raise it"))
        if self.requests_per_tick > self.users:
            rule = f"needs {self.requests_per_tick:,} different users per tick"
            remedy = "lower it, or raise users"
            problems.append(Problem(rule, "requests_per_minute", self.requests_per_minute, remedy))
        if self.videos < 5 * self.page_size:
            problems.append(Problem(f"must fill five pages of {self.page_size}", "videos", self.videos, "raise it"))
        return problems

    @property
    def requests_per_tick(self) -> int:
        return self.requests_per_minute * self.tick_seconds // 60

    @property
    def warmup_seconds(self) -> float:
        return 60.0 * self.warmup_minutes

    @property
    def end_seconds(self) -> float:
        return 60.0 * (self.warmup_minutes + self.minutes)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


QUICK: Mapping[str, Any] = {
    "users": 1500,
    "creators": 200,
    "videos": 1000,
    "uploads_per_minute": 30.0,
    "requests_per_minute": 600,
    "warmup_minutes": 20,
    "minutes": 20,
    "retrain_minutes": 8.0,
    "build_minutes": 2.0,
    "train_minutes": 30.0,
}
"""A first look within two minutes."""


def make_options(given: Mapping[str, Any], *, quick: bool = False) -> SimulationOptions:
    """Options from values by name; `quick` changes the defaults. Raises `ConfigError` with every problem."""
    return from_keywords(SimulationOptions, {**(QUICK if quick else {}), **given})


def check_arms(arms: Sequence[str]) -> tuple[str, ...]:
    """The names of the arms; raises `ConfigError` for unknown and repeated ones."""
    problems = [
        Problem(f"is not an arm{did_you_mean(arm, ARM_NAMES)}", "arms", arm, f"known are {', '.join(ARM_NAMES)}")
        for arm in arms
        if arm not in ARM_NAMES
    ]
    problems += [
        Problem("is repeated", "arms", arm, "name it once") for arm in sorted(set(arms)) if arms.count(arm) > 1
    ]
    if len(arms) < 2 and not problems:
        problems.append(Problem("must be at least two", "arms", ",".join(arms), "an A/B test compares arms"))
    if problems:
        raise ConfigError(problems)
    return tuple(arms)
