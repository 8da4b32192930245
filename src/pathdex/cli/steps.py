"""How the steps of a report are shown: two bars on a terminal, a line per step in a log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pathdex.cli.console import LINE_SECONDS

if TYPE_CHECKING:
    from pathdex.experiments.steps import Step, Watcher


def steps_display(console: Console, stack: ExitStack) -> Watcher:
    """A watcher for this console; `stack` ends it."""
    if not console.is_terminal:
        return StepLines(console)
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )
    return StepBars(stack.enter_context(progress))


class StepLines:
    """Tells a log which step runs, how long it took and what is left."""

    def __init__(self, console: Console) -> None:
        self.console, self.last = console, monotonic()
        self.done = self.total = 0

    def planned(self, steps: Sequence[Step], finished: int) -> None:
        self.done, self.total = finished, finished + len(steps)
        self.console.print(f"{self.total} steps, {finished} finished already")

    def started(self, step: Step) -> None:
        self.last = monotonic()
        self.console.print(f"[{self.done + 1}/{self.total}] {step.title}")

    def advanced(self, part: str, done: int, total: int) -> None:
        if monotonic() - self.last >= LINE_SECONDS:
            self.last = monotonic()
            self.console.print(f"  {part}: {done:,} of {total:,}")

    def finished(self, step: Step, seconds: float) -> None:
        self.done += 1
        self.console.print(f"  {seconds:,.1f} s; {self.total - self.done} left")


class StepBars:
    """A bar for all steps with the names of the next ones, and one for the step that runs."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.whole = progress.add_task("steps", total=None)
        self.part = progress.add_task("", total=None)
        self.left: list[str] = []

    def planned(self, steps: Sequence[Step], finished: int) -> None:
        self.left = [step.title for step in steps]
        self.progress.update(self.whole, completed=finished, total=finished + len(steps))

    def started(self, step: Step) -> None:
        following = ", ".join(self.left[1:3]) or "the report"
        self.progress.update(self.whole, description=f"then {following}")
        self.progress.update(self.part, description=step.title, completed=0, total=None)

    def advanced(self, part: str, done: int, total: int) -> None:
        self.progress.update(self.part, description=f"{self.left[0]}: {part}", completed=done, total=total)

    def finished(self, step: Step, seconds: float) -> None:
        self.left.pop(0)
        self.progress.advance(self.whole)
        self.progress.console.print(f"{step.title}: {seconds:,.1f} s", highlight=False)
