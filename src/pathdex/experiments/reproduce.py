"""`reproduce`: run the steps that are not finished, then write the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathdex.experiments.context import Context
from pathdex.experiments.plan import make_plan
from pathdex.experiments.provenance import checksum
from pathdex.experiments.report.pages import write_report
from pathdex.experiments.report_request import ReportRequest
from pathdex.experiments.results import collect
from pathdex.experiments.step_runner import StepRunner
from pathdex.experiments.steps import ReportProgress, StepStore
from pathdex.storage.json_file import write_json
from pathdex.system import PLOTTING


@dataclass(frozen=True)
class Report:
    """The files of a finished report and its results."""

    html: Path
    markdown: Path
    json: Path
    results: dict[str, Any]


def reproduce(
    request: ReportRequest, folder: str | Path, *, progress: ReportProgress | None = None, command: str = ""
) -> Report:
    """Run every step that `folder` does not hold yet, and write the report.

    Call it again with the same request to resume; finished steps are skipped. `command` is recorded in the report.
    """
    PLOTTING.require()
    progress = progress or ReportProgress()
    store, steps = StepStore(folder), make_plan(request)
    digest = checksum(request.source)
    store.begin(request.fixed(digest))
    remaining = [step for step in steps if not store.has(step)]
    progress.on_plan(remaining, len(steps) - len(remaining))
    runner = StepRunner(Context(request, store, progress))
    for step in remaining:
        progress.on_step_begin(step)
        progress.on_step_end(step, store.run(step, runner[step.kind]))
    results = collect(request, steps, store, checksum=digest, command=command)
    html, markdown = write_report(results, store.path)
    return Report(html, markdown, write_json(store.path / "results.json", results), results)
