"""Progress on standard error: bars on a terminal, occasional lines in a log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from pathdex.cli.console import err, is_quiet
from pathdex.cli.heartbeat import Heartbeat
from pathdex.progress import Progress, count_text
from pathdex.training.callbacks import Callback, StepProgress, describe_record, format_figures, interactive

LINE_SECONDS = 10.0
"""Long work writes a line to a log at most this often."""
LEAST_SHARE = 0.01
"""The time left is estimated once this much is done."""


class Log:
    """Prints lines, and progress lines no more often than every `LINE_SECONDS`."""

    def __init__(self, console: Console) -> None:
        self.console, self.last = console, monotonic()

    def print(self, line: str) -> None:
        self.last = monotonic()
        self.console.print(line)

    def progress(self, line: str) -> None:
        """Print the line unless another was printed a short time ago."""
        if monotonic() - self.last >= LINE_SECONDS:
            self.print(line)


@contextmanager
def show_progress(title: str) -> Iterator[Progress]:
    """Show counted work while the block runs."""
    console = err()
    if not console.is_terminal:
        log = Log(console)
        yield lambda done, total: log.progress(f"{title}: {count_text(done, total)}")
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with RichProgress(*columns, TimeElapsedColumn(), console=console, transient=True) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


class TrainingLog(Callback):
    """Writes a line per finished epoch to a log, and occasional lines within long epochs and long steps."""

    def __init__(self) -> None:
        self.log = Log(err())
        self.first: tuple[float, float] | None = None
        """When the first step was taken, and the share that was done then: a resumed training has begun earlier."""
        self.place = "begin"
        self.heartbeat: Heartbeat | None = None

    def on_train_begin(self) -> None:
        self.heartbeat = Heartbeat(self.on_beat, LINE_SECONDS / 4)
        self.heartbeat.start()

    def on_train_end(self) -> None:
        if self.heartbeat is not None:
            self.heartbeat.stop()
            self.heartbeat = None

    def on_beat(self, compiling: str | None) -> None:
        """Say where training is, and what is compiled, unless another line was printed a short time ago."""
        doing = "working" if compiling is None else f"compiling {compiling}, once on this machine"
        self.log.progress(f"{self.place}  {doing}")

    def on_step_end(self, progress: StepProgress) -> None:
        where = f"{progress.phase} {progress.epoch}/{progress.epochs}  {self._overall(progress.share)}"
        step = f"step {count_text(progress.step, progress.steps)}"
        self.place = f"{progress.phase} {progress.epoch}/{progress.epochs}  after {step}"
        self.log.progress(f"{where}  {step}  {format_figures(progress.losses)}")

    def _overall(self, share: float) -> str:
        """`12% done, 3 min left`"""
        begun, first = self.first = self.first or (monotonic(), share)
        done, seconds = share - first, monotonic() - begun
        return f"{share:.0%} done" + (f", {_duration(seconds * (1 - share) / done)} left" if done > LEAST_SHARE else "")

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        self.log.print(describe_record(record))


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def training_callbacks() -> list[Callback] | None:
    """A `TrainingLog` in a log; on a terminal None, which means the default progress bar. None of them if quiet."""
    if is_quiet():
        return []
    return None if interactive() else [TrainingLog()]
