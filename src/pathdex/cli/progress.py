"""Progress on standard error: bars on a terminal, occasional lines in a log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from pathdex.cli.console import err
from pathdex.progress import Progress, count_text
from pathdex.training.callbacks import Callback, StepProgress, describe_record, format_figures, interactive

LINE_SECONDS = 10.0
"""Long work writes a line to a log at most this often."""


class Log:
    """Prints lines, and says when the next progress line is due."""

    def __init__(self, console: Console) -> None:
        self.console, self.last = console, monotonic()

    @property
    def due(self) -> bool:
        return monotonic() - self.last >= LINE_SECONDS

    def print(self, line: str) -> None:
        self.last = monotonic()
        self.console.print(line)


@contextmanager
def show_progress(title: str) -> Iterator[Progress]:
    """Show counted work while the block runs."""
    console = err()
    if not console.is_terminal:
        yield _progress_lines(Log(console), title)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with RichProgress(*columns, TimeElapsedColumn(), console=console, transient=True) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _progress_lines(log: Log, title: str) -> Progress:
    def progress(done: int, total: int | None) -> None:
        if log.due:
            log.print(f"{title}: {count_text(done, total)}")

    return progress


class TrainingLog(Callback):
    """Writes a line per finished epoch to a log, and occasional lines within long epochs."""

    def __init__(self) -> None:
        self.log = Log(err())

    def on_step_end(self, progress: StepProgress) -> None:
        if self.log.due:
            where = (
                f"{progress.phase} {progress.epoch}/{progress.epochs}  step {count_text(progress.step, progress.steps)}"
            )
            self.log.print(f"{where}  {format_figures(progress.losses)}")

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        self.log.print(describe_record(record))


def training_callbacks() -> list[Callback] | None:
    """A `TrainingLog` in a log; on a terminal None, which means the default progress bar."""
    return None if interactive() else [TrainingLog()]
