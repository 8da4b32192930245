"""Progress of a report's steps on a terminal and in a log."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from pathdex.cli import progress as progress_module
from pathdex.cli.report_progress import ReportBars, ReportLog, show_steps
from pathdex.experiments.steps import Step

STEPS = [Step("a", "fit", "fit a"), Step("b", "fit", "fit b"), Step("c", "time", "time all")]


def test_a_log_shows_each_step_its_time_and_the_steps_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "LINE_SECONDS", 0.0)
    stream = io.StringIO()
    with show_steps(Console(file=stream, width=100, highlight=False, markup=False)) as progress:
        assert isinstance(progress, ReportLog)
        progress.on_plan(STEPS, 2)
        progress.on_step_begin(STEPS[0])
        progress.on_step_progress("epoch 1/2", 10, 1000)
        progress.on_step_end(STEPS[0], 1.25)
    assert stream.getvalue() == (
        "5 steps, 2 already finished\n[3/5] fit a\n  epoch 1/2: 10 of 1,000\n  1.2 s; 2 left\n"
    )


def test_a_terminal_shows_the_running_step_and_the_next_ones() -> None:
    with show_steps(Console(file=io.StringIO(), width=100, force_terminal=True)) as progress:
        assert isinstance(progress, ReportBars)
        progress.on_plan(STEPS, 0)
        progress.on_step_begin(STEPS[0])
        progress.on_step_progress("epoch 1/2", 10, 20)
        steps, part = progress.bars.tasks
        assert (steps.description, steps.completed, steps.total) == ("next: fit b, time all", 0, 3)
        assert (part.description, part.completed, part.total) == ("fit a: epoch 1/2", 10, 20)
        for step in STEPS:
            progress.on_step_begin(step)
            progress.on_step_end(step, 1.0)
        steps, part = progress.bars.tasks
        assert (steps.description, steps.completed) == ("next: the report", 3)
