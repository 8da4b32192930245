"""A tiny data set and a finished report of it, made once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pathdex.data import generate
from pathdex.experiments.report_request import Asked, check_asked
from pathdex.experiments.reproduce import Report, reproduce
from pathdex.experiments.steps import Step, Unwatched
from tests.tiny import TINY


class Diary(Unwatched):
    """Keeps the names of the steps that were done, and stops before a step of that name."""

    def __init__(self, stop: str | None = None) -> None:
        self.done: list[str] = []
        self.left: list[str] = []
        self.stop = stop

    def planned(self, steps: Any, finished: int) -> None:
        self.left = [step.name for step in steps]

    def started(self, step: Step) -> None:
        if step.name == self.stop:
            raise KeyboardInterrupt

    def finished(self, step: Step, seconds: float) -> None:
        self.done.append(step.name)


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 users, 40 items, 1200 rows."""
    return generate(tmp_path_factory.mktemp("planted") / "rows.parquet", users=80, items=40, interactions=1200)


@pytest.fixture(scope="session")
def asked(planted: Path) -> Asked:
    """A quick look with two systems and the ceiling of one of them."""
    return Asked(
        planted,
        split={"valid_users": 8, "test_users": 12},
        methods=["item-cf", "deep-retrieval", "brute-force"],
        seeds=[0, 1],
        n=3,
        parameters={"deep-retrieval": TINY},
        quick=True,
        threads=1,
    )


@pytest.fixture(scope="session")
def report(asked: Asked, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A whole report; tests only read it."""
    folder = tmp_path_factory.mktemp("reports") / "quick"
    return reproduce(check_asked(asked), folder, command="pathdex reproduce rows.parquet")


@pytest.fixture
def short(asked: Asked) -> Asked:
    """The same with one seed and without the study of the index."""
    return replace(asked, seeds=[0], sensitivity=False)
