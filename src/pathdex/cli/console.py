"""Where the command line prints: results to standard output, progress and messages to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from pathdex.training.callbacks import Callback, StepProgress, describe_record, format_figures

LOG_WIDTH = 160
"""Columns where nobody watches: a log has no width of its own."""
LINE_SECONDS = 10.0
"""In a log, a long step says how far it is at most this often."""


def out() -> Console:
    """The console for results."""
    return _console(stderr=False)


def err() -> Console:
    """The console for progress, warnings and errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    # Item ids may hold brackets and colons, which are not markup.
    return Console(
        stderr=stderr,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=not stream.isatty(),
        width=None if stream.isatty() else LOG_WIDTH,
    )


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Table:
    """A table whose first `left` columns are words and the others figures."""
    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, column in enumerate(columns):
        made.add_column(column, justify="left" if place < left else "right", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def pairs(title: str, values: dict[str, str]) -> Table:
    """A table of names and values."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, show_header=False, pad_edge=False)
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in values.items():
        made.add_row(name, value)
    return made


@contextmanager
def counting(title: str) -> Iterator[Callable[[int, int | None], None]]:
    """A function `(done, total)` that shows a bar on a terminal, and a line now and then in a log."""
    console = err()
    if not console.is_terminal:
        yield _Lines(console, title)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


class _Lines:
    def __init__(self, console: Console, title: str) -> None:
        self.console, self.title, self.last = console, title, monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        if monotonic() - self.last >= LINE_SECONDS:
            self.last = monotonic()
            whole = "" if total is None else f" of {total:,}"
            self.console.print(f"{self.title}: {done:,}{whole}")


class LogLines(Callback):
    """Tells a log how training goes: a line per finished epoch, and one now and then inside a long one."""

    def __init__(self) -> None:
        self.console, self.last = err(), monotonic()

    def on_step_end(self, progress: StepProgress) -> None:
        if monotonic() - self.last >= LINE_SECONDS:
            where = f"{progress.phase} {progress.epoch}/{progress.epochs}  step {progress.step:,} of {progress.steps:,}"
            self._print(f"{where}  {format_figures(progress.losses)}")

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        self._print(describe_record(record))

    def _print(self, line: str) -> None:
        self.last = monotonic()
        self.console.print(line)
