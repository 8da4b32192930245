"""How the steps of a report are shown."""

from __future__ import annotations

import io
from contextlib import ExitStack

import pytest
from rich.console import Console

from pathdex.cli import steps as shown
from pathdex.cli.steps import StepBars, StepLines, steps_display
from pathdex.experiments.steps import Step

STEPS = [Step("a", "fit", "fit a"), Step("b", "fit", "fit b"), Step("c", "time", "time all")]


def test_a_log_names_the_step_its_time_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "LINE_SECONDS", 0.0)
    console = Console(file=io.StringIO(), width=100, highlight=False, markup=False)
    with ExitStack() as stack:
        display = steps_display(console, stack)
        display.planned(STEPS, 2)
        display.started(STEPS[0])
        display.advanced("epoch 1/2", 10, 1000)
        display.finished(STEPS[0], 1.25)
    assert isinstance(display, StepLines)
    assert console.file.getvalue() == (  # type: ignore[attr-defined]
        "5 steps, 2 finished already\n[3/5] fit a\n  epoch 1/2: 10 of 1,000\n  1.2 s; 2 left\n"
    )


def test_a_terminal_shows_what_runs_and_what_comes() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    with ExitStack() as stack:
        display = steps_display(console, stack)
        assert isinstance(display, StepBars)
        display.planned(STEPS, 0)
        display.started(STEPS[0])
        display.advanced("epoch 1/2", 10, 20)
        whole, part = display.progress.tasks
        assert (whole.description, whole.completed, whole.total) == ("then fit b, time all", 0, 3)
        assert (part.description, part.completed, part.total) == ("fit a: epoch 1/2", 10, 20)
        for step in STEPS:
            display.started(step)
            display.finished(step, 1.0)
        whole, part = display.progress.tasks
        assert (whole.description, whole.completed) == ("then the report", 3)
