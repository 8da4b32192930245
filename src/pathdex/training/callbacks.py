"""What a training run tells the outside while it works."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from typing_extensions import Self

from pathdex.errors import MissingExtraError


class Callback(Protocol):
    """Hears of every step and every finished epoch or round."""

    def on_step_end(self, phase: str, number: int, of: int, done: int, total: int, losses: dict[str, float]) -> None:
        """Step `done` of `total` in epoch or round `number` of `of` is finished."""

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        """An epoch or a round is finished; the record holds its figures."""


class CallbackList:
    """Several listeners as one."""

    def __init__(self, *listeners: Callback) -> None:
        self.listeners = listeners

    def on_step_end(self, phase: str, number: int, of: int, done: int, total: int, losses: dict[str, float]) -> None:
        for listener in self.listeners:
            listener.on_step_end(phase, number, of, done, total, losses)

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        for listener in self.listeners:
            listener.on_epoch_end(record)


class ProgressBar:
    """A live bar for the running epoch and a line for each finished one; silent where output is not a terminal."""

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

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def on_step_end(self, phase: str, number: int, of: int, done: int, total: int, losses: dict[str, float]) -> None:
        title = f"{phase} {number}/{of}"
        if self.task is None:
            self.task = self.progress.add_task(title, losses="")
        self.progress.update(self.task, description=title, completed=done, total=total, losses=show_figures(losses))

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        if self.console.is_terminal:
            self.console.print(describe_record(record), highlight=False)


class JsonLines:
    """Appends each record to a file, one JSON object per line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_step_end(self, phase: str, number: int, of: int, done: int, total: int, losses: dict[str, float]) -> None:
        return

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        with self.path.open("a") as stream:
            stream.write(json.dumps(record) + "\n")


class TensorBoard:
    """Writes each figure of a record as a TensorBoard scalar (extra `tensorboard`)."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError("tensorboard", "tensorboard", "writing TensorBoard logs") from error
        self.writer = SummaryWriter(str(folder))

    def on_step_end(self, phase: str, number: int, of: int, done: int, total: int, losses: dict[str, float]) -> None:
        return

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        for name, value in record.items():
            if isinstance(value, int | float) and name != "number":
                self.writer.add_scalar(f"{record['phase']}/{name}", value, record["number"])
        self.writer.flush()


def describe_record(record: dict[str, Any]) -> str:
    """One line for a finished epoch or round."""
    shown = {key: record[key] for key in _SHOWN if key in record}
    return f"{record['phase']} {record['number']}  {show_figures(shown)}  {record['seconds']:.1f} s"


_SHOWN = ("softmax", "structure", "valid_loss", "used_paths", "item_mean_size", "top_size", "overlap", "penalty")


def show_figures(figures: dict[str, Any]) -> str:
    return "  ".join(f"{name} {_short(value)}" for name, value in figures.items())


def _short(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def interactive() -> bool:
    """Whether a person is watching: standard error is a terminal."""
    return sys.stderr.isatty()
