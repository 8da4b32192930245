"""Training callbacks: progress bar, log file, TensorBoard, or your own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from pathdex.errors import ConfigError, MissingExtraError, Problem
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


class Callback:
    """Base class of callbacks. Override the methods you need."""

    def on_train_begin(self) -> None:
        """Called once before the first step."""

    def on_step_end(self, progress: StepProgress) -> None:
        """Called after every step."""

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        """Called after every epoch with its record: `phase`, `number`, losses, figures and `seconds`."""

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
    """A live bar for the current epoch and a line per finished epoch; silent if the console is not a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[losses]}"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.task: TaskID | None = None

    def on_train_begin(self) -> None:
        self.progress.start()

    def on_step_end(self, progress: StepProgress) -> None:
        title = f"{progress.phase} {progress.epoch}/{progress.epochs}"
        if self.task is None:
            self.task = self.progress.add_task(title, losses="")
        self.progress.update(
            self.task,
            description=title,
            completed=progress.step,
            total=progress.steps,
            losses=format_figures(progress.losses),
        )

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        if self.console.is_terminal:
            self.console.print(describe_record(record), highlight=False)

    def on_train_end(self) -> None:
        self.progress.stop()


class JsonLines(Callback):
    """Appends each record to a file, one JSON object per line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        with storage_errors(self.path):
            append_line(self.path, json.dumps(record).encode())


class TensorBoard(Callback):
    """Writes each figure of a record as a TensorBoard scalar (extra `tensorboard`)."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError("tensorboard", "tensorboard", "writing TensorBoard logs") from error
        self.writer = SummaryWriter(str(folder))

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        for name, value in record.items():
            if isinstance(value, int | float) and name != "number":
                self.writer.add_scalar(f"{record['phase']}/{name}", value, record["number"])
        self.writer.flush()

    def on_train_end(self) -> None:
        self.writer.close()


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
