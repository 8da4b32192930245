"""`pathdex simulate`."""

from __future__ import annotations

import dataclasses
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from typer import Option

from pathdex.cli.command import gathers, option, split_list, write_result
from pathdex.cli.console import err, out
from pathdex.cli.options import JsonFile
from pathdex.cli.progress import Log
from pathdex.experiments.simulate.options import ARM_NAMES, BASELINE, DEFAULT_ARMS, SimulationOptions, make_options
from pathdex.tables import TextTable

_KINDS = {"int": int, "float": float, "bool": bool}
FLAGS = [
    option(
        spec.name,
        _KINDS[str(spec.type)],
        f"{spec.metadata['help']}; default {spec.default:g}" if spec.type != "bool" else spec.metadata["help"],
        panel="The experiment",
        switch=spec.type == "bool",
    )
    for spec in dataclasses.fields(SimulationOptions)
]


@gathers("given", FLAGS)
def simulate(
    given: dict[str, Any],
    folder: Annotated[Path, Option("--out", help="A new folder for the report.", metavar="REPORT")],
    arms: Annotated[
        str | None, Option(help=f"Arms: {', '.join(ARM_NAMES)}. [default: the first {len(DEFAULT_ARMS)}]")
    ] = None,
    broker: Annotated[
        str,
        Option(
            help="auto: a private redis-server, or a file if it is not installed; file; or redis://HOST/0?stream=NAME."
        ),
    ] = "auto",
    quick: Annotated[bool, Option("--quick", help="A small platform for a first look: other defaults.")] = False,
    threads: Annotated[int | None, Option(help="Number of threads; default: all cores.", min=1)] = None,
    json_file: JsonFile = None,
) -> None:
    """Run the paper's live experiment in a simulator: an A/B test of Deep Retrieval that learns from the stream.

    Users with drifting interests ask for videos, watch or skip them, and what they finish flows through a broker back
    into training. REPORT gets report.html, report.md and results.json. The same seed gives the same figures.

    Examples:

        pathdex simulate --out reports/live --quick

        pathdex simulate --out reports/live --minutes 120 --seed 1
    """
    from pathdex.experiments.simulate.run import run_simulation
    from pathdex.system import PLOTTING

    PLOTTING.require()
    options = make_options(given, quick=quick)
    names = split_list(arms, "--arms") or list(DEFAULT_ARMS)
    try:
        with _show() as progress:
            report = run_simulation(
                folder,
                options,
                arms=names,
                broker=broker,
                quick=quick,
                threads=threads,
                command=shlex.join(["pathdex", *sys.argv[1:]]),
                progress=progress,
            )
    except KeyboardInterrupt:
        message = f"\nInterrupted. No report was written; run the command again to start over in {folder}."
        raise KeyboardInterrupt(message) from None
    write_result(json_file, report.results)
    console = out()
    console.print(TextTable("With 95% intervals", _COLUMNS, _rows(report.results)))
    console.print(f"{report.html}\n{report.markdown}\n{report.json}")


_COLUMNS = ["arm", "finish rate, %", f"against {BASELINE}", "view time, s", "new videos, %", "small creators, %"]


def _rows(results: dict[str, Any]) -> list[list[str]]:
    from pathdex.experiments.simulate.findings import signed
    from pathdex.experiments.simulate.report import interval

    against = {row["arm"]: signed(row) for row in results["differences"] if row["metric"] == "finish_rate"}
    return [
        [
            row["arm"],
            interval(row["finish_rate"]),
            against.get(row["arm"], ""),
            interval(row["view_seconds"], 1, 1),
            interval(row["new_share"], digits=1),
            interval(row["small_share"], digits=1),
        ]
        for row in results["arms"]
    ]


@contextmanager
def _show() -> Iterator[Any]:
    """Show the simulated time and the time left while the block runs."""
    console = err()
    if not console.is_terminal:
        log, began = Log(console), time.monotonic()

        def line(done: float, total: float, what: str) -> None:
            left = "" if not done else f"; about {(time.monotonic() - began) * (total / done - 1) / 60:.0f} min left"
            log.progress(f"minute {done / 60:.0f} of {total / 60:.0f}: {what}{left}")

        yield line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with RichProgress(*columns, TimeElapsedColumn(), console=console) as bars:
        task = bars.add_task("simulation", total=None)
        yield lambda done, total, what: bars.update(task, description=what, completed=done, total=total)
