"""`reproduce`: go through the steps that are not done yet, then write the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathdex.experiments.context import Context, checksum
from pathdex.experiments.plan import make_plan
from pathdex.experiments.report.figures import FIGURES
from pathdex.experiments.report.pages import write_report
from pathdex.experiments.report_request import Request
from pathdex.experiments.results import collect
from pathdex.experiments.step_runner import StepRunner
from pathdex.experiments.steps import Store, Unwatched, Watcher
from pathdex.storage.json_file import write_json


@dataclass(frozen=True)
class Report:
    """The files of a finished report, and what is in them."""

    html: Path
    markdown: Path
    json: Path
    results: dict[str, Any]


def reproduce(request: Request, folder: str | Path, *, watcher: Watcher | None = None, command: str = "") -> Report:
    """Do every step that `folder` does not hold yet, and write its report.

    A call that was interrupted is made again with the same request and goes on. `command` is kept for the record.
    """
    FIGURES.require()
    watcher = watcher or Unwatched()
    store, steps = Store(folder), make_plan(request)
    digest = checksum(request.source)
    store.begin(request.fixed(digest))
    left = [step for step in steps if not store.has(step)]
    watcher.planned(left, len(steps) - len(left))
    works = StepRunner(Context(request, store, watcher))
    for step in left:
        watcher.started(step)
        watcher.finished(step, store.do(step, works[step.kind]))
    results = collect(request, steps, store, checksum=digest, command=command)
    html, markdown = write_report(results, store.path)
    return Report(html, markdown, write_json(store.path / "results.json", results), results)
