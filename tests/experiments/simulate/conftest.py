"""A tiny platform, and a finished simulation of all arms on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathdex.data.interactions import Interactions
from pathdex.experiments.simulate import arm_registry
from pathdex.experiments.simulate.broker import EventLog
from pathdex.experiments.simulate.options import ARM_NAMES, SimulationOptions
from pathdex.experiments.simulate.platform import Platform
from pathdex.experiments.simulate.simulation import Outcome, simulate, streams_of
from pathdex.experiments.simulate.traffic import Requests
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from tests.cli.conftest import SETTINGS

TINY = SimulationOptions(
    users=400,
    creators=30,
    videos=100,
    uploads_per_minute=12.0,
    requests_per_minute=600,
    topics=6,
    warmup_minutes=4,
    minutes=6,
    retrain_minutes=2.0,
    build_minutes=1.0,
    train_minutes=6.0,
    tick_seconds=20,
)


def with_changes(**changes: Any) -> SimulationOptions:
    return replace(TINY, **changes)


def fit_small(options: SimulationOptions, threads: int | None) -> Any:
    """Deep Retrieval that is trained in a moment."""

    def fit(data: Interactions) -> tuple[DeepRetrieval, float]:
        return DeepRetrieval(seed=options.seed, **SETTINGS).fit(data, callbacks=[]), 0.5

    return fit


def run_small(folder: Path, options: SimulationOptions, names: Sequence[str] = ARM_NAMES) -> Outcome:
    """A simulation with small models, over a file."""
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arm_registry, "fit_deep_retrieval", fit_small)
        platform = Platform(options)
        arms = arm_registry.make_arms(names, options, platform, threads=1)
    log = EventLog(str(folder / "events.jsonl"), streams_of(names, options))
    return simulate(options, platform, arms, log)


def requests_of(users: Sequence[int], now: float, shown: Sequence[Sequence[int]] | None = None) -> Requests:
    none: list[list[int]] = [[] for _ in users]
    return Requests(np.array(users), none, none if shown is None else shown, now)


@pytest.fixture(scope="session")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """All arms on the tiny platform; tests only read it."""
    pytest.importorskip("usearch")
    return run_small(tmp_path_factory.mktemp("simulation"), TINY)
