"""Progress of a report's steps: two bars on a terminal, a line per step in a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from pathdex.cli.progress import Log
from pathdex.experiments.steps import ReportProgress, Step
from pathdex.progress import count_text


@contextmanager
def show_steps(console: Console) -> Iterator[ReportProgress]:
    """Show the steps of a report while the block runs."""
    if not console.is_terminal:
        yield ReportLog(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with RichProgress(*columns, console=console) as bars:
        yield ReportBars(bars)


class ReportLog(ReportProgress):
    """Writes each step, its time and the number of remaining steps."""

    def __init__(self, console: Console) -> None:
        self.log = Log(console)
        self.done = self.total = 0

    def on_plan(self, steps: Sequence[Step], finished: int) -> None:
        self.done, self.total = finished, finished + len(steps)
        self.log.print(f"{self.total} steps, {finished} already finished")

    def on_step_begin(self, step: Step) -> None:
        self.log.print(f"[{self.done + 1}/{self.total}] {step.title}")

    def on_step_progress(self, part: str, done: int, total: int | None) -> None:
        self.log.progress(f"  {part}: {count_text(done, total)}")

    def on_step_end(self, step: Step, seconds: float) -> None:
        self.done += 1
        self.log.print(f"  {seconds:,.1f} s; {self.total - self.done} left")


class ReportBars(ReportProgress):
    """A bar for all steps, with the names of the next ones, and a bar for the running step."""

    def __init__(self, bars: RichProgress) -> None:
        self.bars = bars
        self.steps_task = bars.add_task("steps", total=None)
        self.part_task = bars.add_task("", total=None)
        self.remaining: list[str] = []

    def on_plan(self, steps: Sequence[Step], finished: int) -> None:
        self.remaining = [step.title for step in steps]
        self.bars.update(self.steps_task, completed=finished, total=finished + len(steps))

    def on_step_begin(self, step: Step) -> None:
        following = ", ".join(self.remaining[1:3]) or "the report"
        self.bars.update(self.steps_task, description=f"next: {following}")
        self.bars.update(self.part_task, description=step.title, completed=0, total=None)

    def on_step_progress(self, part: str, done: int, total: int | None) -> None:
        self.bars.update(self.part_task, description=f"{self.remaining[0]}: {part}", completed=done, total=total)

    def on_step_end(self, step: Step, seconds: float) -> None:
        self.remaining.pop(0)
        self.bars.advance(self.steps_task)
        self.bars.console.print(f"{step.title}: {seconds:,.1f} s", highlight=False)
