"""The training loop of every learned model: phases, epochs and steps, with callbacks and checkpoints."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from numpy.typing import NDArray

from pathdex.errors import ConfigError, Problem
from pathdex.training.callbacks import Callback, StepProgress, describe_record, following
from pathdex.training.checkpointing import Checkpointer
from pathdex.training.determinism import deterministic

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingState:
    """Part of a checkpoint: JSON values and arrays."""

    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


class Phase(ABC):
    """Epochs of one kind. A phase owns what it trains and can save and restore it after any step.

    Steps must depend only on the seed, the epoch and the step, so that a resumed training repeats them exactly.
    """

    name: str
    epochs: int
    epoch_cost: float = 1.0
    """How long an epoch takes, relative to those of other phases; for estimates of the time left."""

    def begin(self) -> None:  # noqa: B027
        """Called before the first epoch, but not when training resumes within the phase."""

    @abstractmethod
    def begin_epoch(self, epoch: int) -> int:
        """Prepare an epoch, counted from 0; returns the number of steps."""

    @abstractmethod
    def step(self, epoch: int, step: int) -> Mapping[str, float]:
        """Take one step; returns its losses."""

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        """Called after the last step of an epoch; returns figures for the record."""
        return {}

    def is_finished(self, epoch: int) -> bool:
        """Whether the phase ends before an epoch, although its epochs are not over."""
        return False

    def end(self) -> None:  # noqa: B027
        """Called after the last epoch."""

    @abstractmethod
    def state_dict(self) -> TrainingState:
        """Everything that later steps depend on. Arrays may share memory with the model."""

    @abstractmethod
    def load_state_dict(self, state: TrainingState) -> None:
        """Restore what `state_dict` returned. `state` also holds the entries of the other phases."""


@dataclass
class Cursor:
    """The next step, and the summed losses of the current epoch."""

    phase: int = 0
    epoch: int = 0
    step: int = 0
    sums: dict[str, float] | None = None
    seconds: float = 0.0


class TrainingLoop:
    """Runs phases in order. With a checkpointer, training can stop after any step and resume to the same result."""

    def __init__(
        self,
        phases: Sequence[Phase],
        callbacks: Sequence[Callback] | None = None,
        checkpointer: Checkpointer | None = None,
        *,
        records: list[dict[str, Any]] | None = None,
        device: str = "cpu",
    ) -> None:
        self.phases, self.callbacks, self.checkpointer = tuple(phases), callbacks, checkpointer
        self.records = [] if records is None else records
        """One record per finished epoch. Phases may share the list to read earlier records."""
        self.cursor = Cursor()
        self.device = torch.device(device)

    def skip_to(self, phase: Phase) -> None:
        """Start at a later phase."""
        self.cursor = Cursor(self.phases.index(phase))

    def append(self, phase: Phase) -> None:
        """Add a last phase."""
        self.phases = (*self.phases, phase)

    def run(self) -> None:
        """Run from the cursor to the end."""
        if self.checkpointer is not None:
            self.checkpointer.claim()
        with following(self.callbacks) as callback, deterministic(self.device):
            for number in range(self.cursor.phase, len(self.phases)):
                self._run_phase(self.phases[number], callback)
                self.cursor = Cursor(number + 1)
                self._save()

    def resume(self) -> None:
        """Restore the state of the checkpoint."""
        if self.checkpointer is None:
            raise ConfigError([Problem("needs a checkpoint", "resume", True, "pass checkpoint=FILE")])
        values, arrays = self.checkpointer.load()
        for phase in self.phases:
            phase.load_state_dict(TrainingState(values, arrays))
        self.cursor, self.records[:] = Cursor(**values["cursor"]), values["records"]

    def _run_phase(self, phase: Phase, callback: Callback) -> None:
        if self.cursor.epoch == 0 and self.cursor.step == 0:
            phase.begin()
        for epoch in range(self.cursor.epoch, phase.epochs):
            if phase.is_finished(epoch):
                break
            started = time.monotonic() - self.cursor.seconds
            losses = self._run_epoch(phase, epoch, started, callback)
            figures = phase.end_epoch(epoch)
            record = {
                "phase": phase.name,
                "number": epoch + 1,
                **losses,
                **figures,
                "seconds": time.monotonic() - started,
            }
            self.records.append(record)
            self.cursor = Cursor(self.cursor.phase, epoch + 1)
            self._save()
            log.info("%s", describe_record(record))
            callback.on_epoch_end(record)
        phase.end()

    def _run_epoch(self, phase: Phase, epoch: int, started: float, callback: Callback) -> dict[str, float]:
        """Take the remaining steps of an epoch; returns the mean losses of the whole epoch."""
        steps, sums = phase.begin_epoch(epoch), self.cursor.sums or {}
        for step in range(self.cursor.step, steps):
            losses, done = phase.step(epoch, step), step + 1
            sums = {name: sums.get(name, 0.0) + loss for name, loss in losses.items()}
            means = {name: value / done for name, value in sums.items()}
            share = self._share(phase, epoch + done / steps)
            callback.on_step_end(StepProgress(phase.name, epoch + 1, phase.epochs, done, steps, means, share))
            self.cursor.step, self.cursor.sums = done, sums
            self.cursor.seconds = time.monotonic() - started
            if self.checkpointer is not None and self.checkpointer.due():
                self._save()
        return {name: value / steps for name, value in sums.items()}

    def _share(self, phase: Phase, epochs: float) -> float:
        """The share of all phases that is done after some epochs of one."""
        costs = [one.epochs * one.epoch_cost for one in self.phases]
        earlier = sum(costs[: self.phases.index(phase)])
        return min(1.0, (earlier + epochs * phase.epoch_cost) / max(sum(costs), 1e-9))

    def _save(self) -> None:
        if self.checkpointer is None:
            return
        values: dict[str, Any] = {"cursor": vars(self.cursor), "records": self.records}
        arrays: dict[str, NDArray[Any]] = {}
        for phase in self.phases:
            state = phase.state_dict()
            values |= state.values
            arrays |= state.arrays
        self.checkpointer.save(values, arrays)
