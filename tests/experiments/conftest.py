"""A tiny data set and a finished report, made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pathdex.data import generate
from pathdex.experiments.report_request import ReproduceOptions, make_report_request
from pathdex.experiments.reproduce import Report, reproduce
from pathdex.experiments.steps import ReportProgress, Step
from tests.tiny import TINY


class StepRecorder(ReportProgress):
    """Records planned and finished steps, and interrupts before the step `stop`."""

    def __init__(self, stop: str | None = None) -> None:
        self.planned: list[str] = []
        self.finished: list[str] = []
        self.stop = stop

    def on_plan(self, steps: Sequence[Step], finished: int) -> None:
        self.planned = [step.name for step in steps]

    def on_step_begin(self, step: Step) -> None:
        if step.name == self.stop:
            raise KeyboardInterrupt

    def on_step_end(self, step: Step, seconds: float) -> None:
        self.finished.append(step.name)


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 users, 40 items, 1200 rows."""
    return generate(tmp_path_factory.mktemp("planted") / "rows.parquet", users=80, items=40, interactions=1200)


@pytest.fixture(scope="session")
def options(planted: Path) -> ReproduceOptions:
    """A quick run with two methods and brute force."""
    return ReproduceOptions(
        planted,
        split={"valid_users": 8, "test_users": 12},
        methods=["item-cf", "deep-retrieval", "brute-force"],
        seeds=[0, 1],
        n=3,
        parameters={"deep-retrieval": TINY},
        quick=True,
        options={"threads": 1},
    )


@pytest.fixture(scope="session")
def report(options: ReproduceOptions, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A finished report; tests only read it."""
    folder = tmp_path_factory.mktemp("reports") / "quick"
    return reproduce(make_report_request(options), folder, command="pathdex reproduce rows.parquet")


@pytest.fixture
def short(options: ReproduceOptions) -> ReproduceOptions:
    """The same with one seed and without the sensitivity study."""
    return replace(options, seeds=[0], sensitivity=False)
