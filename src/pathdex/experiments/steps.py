"""Resumable steps: each finished step is a JSON file and is not run again.

REPORT/request.json        the request that started the report
REPORT/steps/NAME.json     a finished step: inputs, result, time and memory
REPORT/models/             fitted models for later steps; can be deleted once all steps are finished
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

import pathdex
from pathdex.errors import RunError
from pathdex.experiments.provenance import peak_memory, reset_peak, source_digest
from pathdex.experiments.report_request import check_same
from pathdex.storage.json_file import write_json


@dataclass(frozen=True)
class Step:
    """One piece of work: its kind and inputs."""

    name: str
    kind: str
    title: str
    """Shown while it runs and in the report."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the step function, ready for JSON."""
    replaceable: bool = False
    """Whether changed inputs run the step again; otherwise they are an error."""


StepFunction: TypeAlias = Callable[..., dict[str, Any]]
"""Takes the inputs of a step and returns what JSON can hold."""


class ReportProgress:
    """Follows the steps of a report. Override the methods you need."""

    def on_plan(self, steps: Sequence[Step], finished: int) -> None:
        """Called once with the steps to run, in order, and the number of those already finished."""

    def on_step_begin(self, step: Step) -> None:
        """Called before a step."""

    def on_step_progress(self, part: str, done: int, total: int | None) -> None:
        """Called while a step runs, with what it is doing and how far it is."""

    def on_step_end(self, step: Step, seconds: float) -> None:
        """Called after a step."""


class StepStore:
    """The folder of a report."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def models(self) -> Path:
        return self.path / "models"

    def begin(self, fixed: Mapping[str, Any]) -> None:
        """Create the folder, or check that it was started with the same request."""
        file = self.path / "request.json"
        plain = json.loads(json.dumps(fixed))
        if file.exists():
            check_same(self.path, _read(file), plain)
        elif self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise RunError(f"{self.path} exists and is not a report; choose another folder")
        else:
            write_json(file, plain)

    def has(self, step: Step) -> bool:
        """Whether the step is finished with these inputs.

        A step finished with other inputs must run again if it is replaceable; otherwise this raises `RunError`.
        """
        if not self._file(step.name).exists():
            return False
        before = self.record(step.name)["inputs"]
        plain = json.loads(json.dumps(dict(step.inputs)))
        if before == plain:
            return True
        if not step.replaceable:
            check_same(self._file(step.name), before, plain)
        return False

    def record(self, name: str) -> dict[str, Any]:
        """Inputs, result, time and memory of a finished step."""
        return _read(self._file(name))

    def result(self, name: str) -> dict[str, Any]:
        """The result of a finished step."""
        found: dict[str, Any] = self.record(name)["result"]
        return found

    def run(self, step: Step, function: StepFunction) -> float:
        """Run the step and store its record; returns the seconds it took."""
        started, measured = time.monotonic(), reset_peak()
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        result = function(**step.inputs)
        seconds = time.monotonic() - started
        record = {
            "step": step.name,
            "title": step.title,
            "inputs": dict(step.inputs),
            "started": at,
            "seconds": seconds,
            "peak_memory": peak_memory(),
            "peak_of_step": measured,
            "pathdex": pathdex.__version__,
            "code": source_digest(),
            "result": result,
        }
        write_json(self._file(step.name), record)
        return seconds

    def _file(self, name: str) -> Path:
        return self.path / "steps" / f"{name}.json"


def _read(file: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(file.read_text())
    except OSError as error:
        raise RunError(f"{file} cannot be read ({error.strerror}); write the report to a new folder") from error
    except ValueError as error:
        raise RunError(f"{file} is damaged ({error}); delete it to run this step again") from error
    return content
