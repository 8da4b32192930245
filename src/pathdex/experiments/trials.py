"""Trials of a study, its result, and what follows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from pathdex.config import Config
from pathdex.errors import RunError

DEFAULT_TRIALS = 20
NOT_YET = "no trial is finished yet; allow more trials or minutes"
FINISHED, PRUNED, FAILED = "finished", "pruned", "failed"


@dataclass(frozen=True)
class TuneTrial:
    """One training. `f_measure` is None unless it is finished."""

    number: int
    state: str
    parameters: Mapping[str, Any]
    f_measure: float | None
    seconds: float
    error: str | None = None
    """Why it failed."""


@dataclass(frozen=True)
class TuneResult:
    """All trials of a study; the first one has the defaults."""

    trials: tuple[TuneTrial, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    toml: Path | None = None

    @property
    def best(self) -> TuneTrial:
        """The trial with the highest F on the validation users; the earliest of equal ones."""
        return max(self._finished, key=lambda one: (one.f_measure or 0.0, -one.number))

    @property
    def config(self) -> Config:
        """The hyper-parameters of the best trial."""
        return Config.from_dict({**self.fixed, **self.best.parameters})

    @property
    def _finished(self) -> list[TuneTrial]:
        found = [one for one in self.trials if one.state == FINISHED]
        if not found:
            errors = {one.error for one in self.trials if one.error}
            raise RunError(f"no trial is finished: {'; '.join(sorted(errors))}" if errors else NOT_YET)
        return found

    def to_frame(self) -> pl.DataFrame:
        """One row per trial, with a column per hyper-parameter."""
        rows = [
            {"trial": one.number, "state": one.state, "f_measure": one.f_measure, "seconds": one.seconds}
            | dict(one.parameters)
            for one in self.trials
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        finished = any(one.state == FINISHED for one in self.trials)
        return {
            "best": self.best.number if finished else None,
            "fixed": dict(self.fixed),
            "trials": [{**vars(one), "parameters": dict(one.parameters)} for one in self.trials],
        }


class TuneProgress:
    """Follows a study. Override the methods you need."""

    def on_begin(self, finished: int, total: int) -> None:
        """Called once with the trials that earlier calls finished, and the number to reach."""

    def on_trial_begin(self, number: int, parameters: Mapping[str, Any]) -> None:
        """Called before a trial."""

    def on_epoch(self, record: Mapping[str, Any]) -> None:
        """Called after every epoch of a trial, with its record."""

    def on_trial_end(self, trial: TuneTrial, best: TuneTrial | None) -> None:
        """Called after a trial, with the best one so far."""
