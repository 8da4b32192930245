"""Options are checked together, with a remedy each."""

from __future__ import annotations

from typing import Any

import pytest

from pathdex.errors import ConfigError
from pathdex.experiments.simulate.options import DEFAULT_ARMS, QUICK, SimulationOptions, check_arms, make_options


def test_defaults_and_quick_are_valid() -> None:
    assert SimulationOptions().requests_per_tick == 250
    assert make_options({}, quick=True).users == QUICK["users"]


def test_given_values_win_over_quick_ones() -> None:
    assert make_options({"users": 200}, quick=True).users == 200


def test_times_in_seconds() -> None:
    options = SimulationOptions(warmup_minutes=10, minutes=20)
    assert (options.warmup_seconds, options.end_seconds) == (600, 1800)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"users": 3}, "users=3: must be at least 10"),
        ({"drift": -1.0}, "drift=-1.0: must be at least 0.0"),
        ({"user": 3}, "user=3: is not a hyper-parameter; did you mean 'users'?"),
        ({"build_minutes": 20.0}, "must be at most retrain_minutes=15, or builds pile up; build faster, or less often"),
        ({"train_minutes": 5.0}, "must be at least warmup_minutes=30, or the first model lacks data; raise it"),
        ({"tick_seconds": 7}, "tick_seconds=7: must divide 60; take 5, 10, 20 or 30"),
        ({"tick_seconds": 1, "requests_per_minute": 30}, "less than one page per tick; raise it"),
        ({"users": 100}, "needs 250 different users per tick; lower it, or raise users"),
        ({"videos": 60, "page_size": 20}, "videos=60: must fill five pages of 20; raise it"),
    ],
)
def test_bad_options(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        make_options(given)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (["streeming", "frozen"], "arms='streeming': is not an arm; did you mean 'streaming'?; known are streaming"),
        (["frozen", "frozen"], "arms='frozen': is repeated; name it once"),
        (["frozen"], "arms='frozen': must be at least two; an A/B test compares arms"),
    ],
)
def test_bad_arms(arms: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        check_arms(arms)
    assert message in str(error.value)


def test_the_default_arms_are_arms() -> None:
    assert check_arms(DEFAULT_ARMS) == DEFAULT_ARMS
