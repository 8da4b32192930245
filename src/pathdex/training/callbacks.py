"""Training callbacks: progress bar, log file, or your own. `pathdex.training.trackers` has more."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pathdex.errors import ConfigError, Problem
from pathdex.storage.atomic import storage_errors
from pathdex.storage.filesystem import append_line


class StepProgress(NamedTuple):
    """Progress after a step. Epochs and steps count from 1."""

    phase: str
    epoch: int
    epochs: int
    step: int
    steps: int
    losses: Mapping[str, float]
    """Means over the epoch so far."""
    share: float = 0.0
    """How much of the whole training is done, from 0 to 1: an estimate, since training may stop early."""


class Callback:
    """Base class of callbacks. Override the methods you need."""

    def on_train_begin(self) -> None:
        """Called once before the first step."""

    def on_step_end(self, progress: StepProgress) -> None:
        """Called after every step."""

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        """Called after every epoch with its record: `phase`, `number`, losses, figures and `seconds`."""

    def on_train_error(self, error: BaseException) -> None:
        """Called before `on_train_end` if training fails or is interrupted."""

    def on_train_end(self) -> None:
        """Called once after the last step, even if training fails."""


class CallbackList(Callback):
    """Calls several callbacks in order."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self.callbacks = tuple(callbacks)

    def on_train_begin(self) -> None:
        for callback in self.callbacks:
            callback.on_train_begin()

    def on_step_end(self, progress: StepProgress) -> None:
        for callback in self.callbacks:
            callback.on_step_end(progress)

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        for callback in self.callbacks:
            callback.on_epoch_end(record)

    def on_train_error(self, error: BaseException) -> None:
        for callback in self.callbacks:
            callback.on_train_error(error)

    def on_train_end(self) -> None:
        for callback in self.callbacks:
            callback.on_train_end()


@contextmanager
def following(callbacks: Sequence[Callback] | None) -> Iterator[Callback]:
    """Combine callbacks; calls `on_train_begin` on entry and `on_train_end` on exit. None: `default_callbacks()`."""
    combined = CallbackList(default_callbacks() if callbacks is None else _checked(callbacks))
    combined.on_train_begin()
    try:
        yield combined
    except BaseException as error:
        combined.on_train_error(error)
        raise
    finally:
        combined.on_train_end()


def _checked(callbacks: Sequence[Callback] | Callback) -> Sequence[Callback]:
    if isinstance(callbacks, Callback):
        return [callbacks]
    if not isinstance(callbacks, Sequence) or not all(isinstance(one, Callback) for one in callbacks):
        raise ConfigError([Problem("must hold callbacks", "callbacks", callbacks, "subclass pathdex.Callback")])
    return callbacks


def default_callbacks() -> list[Callback]:
    """A progress bar if standard error is a terminal."""
    return [ProgressBar()] if interactive() else []


class ProgressBar(Callback):
    """A live bar for the whole training and a line per finished epoch; silent if the console is not a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            TextColumn("{task.fields[figure]}"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.task: TaskID | None = None
        self.figure = ""

    def on_train_begin(self) -> None:
        self.progress.start()

    def on_step_end(self, progress: StepProgress) -> None:
        if self.task is None:
            self.task = self.progress.add_task("", total=1.0, figure="")
        self.progress.update(
            self.task,
            description=f"{progress.phase} {progress.epoch}/{progress.epochs}",
            completed=progress.share,
            figure=self.figure or format_figures(progress.losses),
        )

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        if "held_out_f" in record:
            self.figure = validation_figure(record)
        if self.console.is_terminal:
            self.console.print(describe_record(record), highlight=False)

    def on_train_end(self) -> None:
        self.progress.stop()


def validation_figure(record: Mapping[str, Any]) -> str:
    """The figure on held-out users, for a progress bar."""
    return f"valid F {100 * record['held_out_f']:.2f}%"


class JsonLines(Callback):
    """Appends each record to a file, one JSON object per line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        with storage_errors(self.path):
            append_line(self.path, json.dumps(record).encode())


_SHOWN = (
    "loss",
    "softmax",
    "structure",
    "valid_loss",
    "held_out_f",
    "kept_epoch",
    "used_paths",
    "item_mean_size",
    "top_size",
    "overlap",
    "penalty",
)


def describe_record(record: Mapping[str, Any]) -> str:
    """One line for a finished epoch."""
    shown = {key: record[key] for key in _SHOWN if key in record}
    line = f"{record['phase']} {record['number']}  {format_figures(shown)}  {record['seconds']:.1f} s"
    if "choices" in record:
        return f"{line}\n{describe_choice(record)}"
    return f"{line}\n  {record['reason']}" if "reason" in record else line


def describe_choice(record: Mapping[str, Any]) -> str:
    """What a training has chosen, and why."""
    chosen = ", ".join(f"{name}={value:g}" for name, value in record["choices"].items())
    return f"  chosen: {chosen}: {record['reason']}"


def format_figures(figures: Mapping[str, Any]) -> str:
    """`name value` pairs with four significant digits."""
    return "  ".join(f"{name} {_short(value)}" for name, value in figures.items())


def interactive() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()


def _short(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
