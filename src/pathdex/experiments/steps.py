"""Steps that are done once: each leaves a JSON file, and a file that is there is not made again.

REPORT/request.json        what the report is asked for
REPORT/steps/NAME.json     a finished step: what went in, what came out, its time and memory
REPORT/models/             fitted models that later steps ask; may be removed when all steps are done
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

import pathdex
from pathdex.errors import RunError
from pathdex.experiments.peak_memory import forget_peak, peak_memory
from pathdex.experiments.report_request import check_same
from pathdex.experiments.source_digest import source_digest
from pathdex.storage.json_file import write_json


@dataclass(frozen=True)
class Step:
    """One piece of work, by its kind and what it is given."""

    name: str
    kind: str
    title: str
    """For people."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """What the work is called with, ready for JSON."""
    again: bool = False
    """Whether a step with other inputs is done again; else it is refused."""


class Watcher(Protocol):
    """Hears how a report comes along."""

    def planned(self, steps: Sequence[Step], finished: int) -> None:
        """So many of the steps are finished already; the others are to be done, in this order."""

    def started(self, step: Step) -> None: ...
    def advanced(self, part: str, done: int, total: int) -> None:
        """The running step has come so far."""

    def finished(self, step: Step, seconds: float) -> None: ...


class Unwatched:
    """A watcher that says nothing."""

    def planned(self, steps: Sequence[Step], finished: int) -> None:
        return

    def started(self, step: Step) -> None:
        return

    def advanced(self, part: str, done: int, total: int) -> None:
        return

    def finished(self, step: Step, seconds: float) -> None:
        return


class Work(Protocol):
    def __call__(self, **inputs: Any) -> dict[str, Any]: ...


class Store:
    """The folder of a report."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def models(self) -> Path:
        return self.path / "models"

    def begin(self, fixed: Mapping[str, Any]) -> None:
        """Make the folder, or check that it was begun with the same request."""
        file = self.path / "request.json"
        plain = json.loads(json.dumps(fixed))
        if file.exists():
            check_same(self.path, _read(file), plain)
        elif self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise RunError(f"{self.path} exists and holds no report; choose another folder")
        else:
            write_json(file, plain)

    def has(self, step: Step) -> bool:
        """Whether the step is finished with these inputs. One that was done with others is to be done again where it
        may be, and is a `RunError` where it may not."""
        if not self._file(step.name).exists():
            return False
        before = self.record(step.name)["inputs"]
        plain = json.loads(json.dumps(dict(step.inputs)))
        if before == plain:
            return True
        if not step.again:
            check_same(self._file(step.name), before, plain)
        return False

    def record(self, name: str) -> dict[str, Any]:
        """All that is known of a finished step."""
        return _read(self._file(name))

    def result(self, name: str) -> dict[str, Any]:
        """What came out of a finished step."""
        found: dict[str, Any] = self.record(name)["result"]
        return found

    def do(self, step: Step, work: Work) -> float:
        """Do the step and keep its result, its wall time and its memory; returns the seconds."""
        started, measured = time.monotonic(), forget_peak()
        at = datetime.now(timezone.utc).isoformat(timespec="seconds")
        result = work(**step.inputs)
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
        raise RunError(f"{file} cannot be read ({error.strerror}); make the report again in a new folder") from error
    except ValueError as error:
        raise RunError(f"{file} is damaged ({error}); remove it, and this step is done again") from error
    return content
