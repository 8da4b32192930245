"""`simulate`: run an experiment in a simulator and write its report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathdex.errors import RunError
from pathdex.experiments.provenance import environment, source_digest
from pathdex.experiments.report.pages import write_document
from pathdex.experiments.simulate.arm_registry import make_arms
from pathdex.experiments.simulate.broker import AUTO, PROGRAM, STREAM, EventLog, open_log
from pathdex.experiments.simulate.metrics import measure
from pathdex.experiments.simulate.options import DEFAULT_ARMS, SimulationOptions, check_arms
from pathdex.experiments.simulate.platform import Platform
from pathdex.experiments.simulate.report import make_simulation_document
from pathdex.experiments.simulate.simulation import SimulationProgress, simulate, streams_of
from pathdex.storage.folder_lock import LOCK, folder_lock
from pathdex.storage.json_file import write_json
from pathdex.system import PLOTTING

SCHEMA = 1


@dataclass(frozen=True)
class SimulationReport:
    """The files of a finished report and its results."""

    html: Path
    markdown: Path
    json: Path
    results: dict[str, Any]


def run_simulation(
    folder: str | Path,
    options: SimulationOptions | None = None,
    *,
    arms: Sequence[str] = DEFAULT_ARMS,
    broker: str = AUTO,
    quick: bool = False,
    threads: int | None = None,
    command: str = "",
    progress: SimulationProgress = lambda done, total, what: None,
) -> SimulationReport:
    """Simulate the arms and write the report into a new folder.

    `broker` is `auto`, `file` or a Redis URL with a stream. `quick` marks the report, and `command` is recorded in it.
    If it is interrupted, no report is written and the folder can be used again.
    """
    PLOTTING.require()
    options, arms, place = options or SimulationOptions(), check_arms(arms), Path(folder)
    platform = Platform(options)
    made = make_arms(arms, options, platform, threads=threads)
    began = time.monotonic()
    with folder_lock(place, "pathdex simulate"):
        _check_folder(place)
        with open_log(broker, place, streams_of(arms, options)) as log:
            outcome = simulate(options, platform, made, log, progress=progress)
            described = _describe(log, broker)
        results = {
            "schema": SCHEMA,
            "quick": quick,
            "options": options.to_dict(),
            "broker": described,
            **measure(outcome),
            "provenance": {
                "command": command,
                **environment(place),
                "threads": threads or environment(place)["threads"],
                "code": source_digest(),
                "seconds": time.monotonic() - began,
            },
        }
        html, markdown = write_document(make_simulation_document(results), place)
        return SimulationReport(html, markdown, write_json(place / "results.json", results), results)


def _check_folder(folder: Path) -> None:
    """Only what an interrupted simulation leaves behind may be there."""
    others = [one.name for one in folder.iterdir() if one.name != LOCK and not one.name.startswith(f"{STREAM}")]
    if others:
        raise RunError(f"{folder} is not empty (it has {sorted(others)[0]}); choose a new folder")


def _describe(log: EventLog, broker: str) -> str:
    if "://" not in log.place:
        return f"a file of JSON lines, `{Path(log.place).name}`"
    if broker == AUTO:
        return f"Redis Streams, a private `{PROGRAM}` that the command started and stopped"
    return f"Redis Streams at `{log.shown}`"
