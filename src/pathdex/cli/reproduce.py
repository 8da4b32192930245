"""`pathdex reproduce`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from pathdex.cli.command import split_integers, split_list, write_result
from pathdex.cli.console import err, out
from pathdex.cli.options import DataPath, JsonFile, takes_machine, takes_reading, takes_split
from pathdex.errors import ConfigError, Problem
from pathdex.tables import TextTable


@takes_split
@takes_reading
@takes_machine
def reproduce(
    reading: dict[str, Any],
    split: dict[str, Any],
    run_options: dict[str, Any],
    source: DataPath,
    folder: Annotated[Path, Option("--out", help="The folder of the report, new or to resume.", metavar="REPORT")],
    preset: Annotated[
        str | None,
        Option(help="movielens-20m, amazon-books (the paper's), movielens-1m, none. [default: by file name]"),
    ] = None,
    methods: Annotated[str | None, Option(help="Methods of docs/baselines.md. [default: all installed]")] = None,
    seeds: Annotated[
        str | None, Option(help="Seeds for held-out users and training. [default: 0,1,2; paper's presets: 0 to 4]")
    ] = None,
    n: Annotated[int | None, Option("--n", help="Items recommended per user. [default: 10, or the preset's]")] = None,
    quick: Annotated[bool, Option("--quick", help="Quick run: four methods, one seed, no tuning.")] = False,
    tune: Annotated[bool, Option(help="Tune every method on validation data.")] = True,
    sensitivity: Annotated[
        bool | None,
        Option(
            "--sensitivity/--no-sensitivity",
            help="Vary K, D, J, B and alpha of Deep Retrieval. [default: on, but off with --quick]",
        ),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        Option("--set", help="Fix a hyper-parameter; the value is JSON: tdm.epochs=2.", metavar="METHOD.NAME=VALUE"),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Run the paper's experiments on any data: all methods, with tables, figures and significance tests.

    REPORT gets report.html, report.md and results.json. Re-run the command to resume; finished steps are skipped.
    Methods and seeds can be added later.

    Examples:

        pathdex reproduce ml-1m.zip --out reports/ml-1m --quick

        pathdex reproduce events.parquet --out reports/events --n 50 --methods item-cf,tdm,deep-retrieval,brute-force
    """
    from pathdex.cli.report_progress import show_steps
    from pathdex.experiments.report_request import ReproduceOptions, command_line, make_report_request
    from pathdex.experiments.reproduce import reproduce as run_steps
    from pathdex.system import PLOTTING

    PLOTTING.require()
    given = ReproduceOptions(
        source=Path(source),
        reading=reading,
        split=split,
        preset=preset,
        methods=split_list(methods, "--methods"),
        seeds=split_integers(seeds, "--seeds", low=0),
        n=n,
        parameters=parse_parameters(parameters or []),
        quick=quick,
        tune=tune,
        sensitivity=not quick if sensitivity is None else sensitivity,
        options=run_options,
    )
    request = make_report_request(given)
    log = err()
    shown = ", ".join(f"{name}={value!r}" for name, value in request.reading.items()) or "none"
    log.print(f"filters and columns (preset {request.preset}): {shown}")
    for name, why in request.missing.items():
        log.print(f"{name} is left out: {why}")
    try:
        with show_steps(log) as progress:
            report = run_steps(request, folder, progress=progress, command=command_line(given, folder))
    except KeyboardInterrupt:
        message = "\nInterrupted. Re-run the command to resume; finished steps are skipped."
        raise KeyboardInterrupt(message) from None
    write_result(json_file, report.results)
    console = out()
    console.print(TextTable(f"Top {request.n}, in %, seen items removed", _COLUMNS, _rows(report.results)))
    console.print(f"{report.html}\n{report.markdown}\n{report.json}")


_COLUMNS = ["method", "precision", "recall", "distinct recall", "F", "ms per query"]


def _rows(results: dict[str, Any]) -> list[list[str]]:
    from pathdex.experiments.report.wording import milliseconds, share

    times = {row["method"]: row["seconds_per_query"] for row in results["inference_time"] if row["main"]}
    return [
        [
            row["method"],
            *(share(row, key) for key in ("precision", "recall", "distinct_recall", "f_measure")),
            milliseconds(times[row["method"]]),
        ]
        for row in results["comparison"]
        if row["main"] and row["filter_seen"]
    ]


def parse_parameters(texts: list[str]) -> dict[str, dict[str, Any]]:
    """Hyper-parameters by method from texts such as `tdm.epochs=2`."""
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        method, dot, parameter = name.partition(".")
        if not equals or not dot or not parameter:
            raise ConfigError([Problem("must be METHOD.NAME=VALUE", "--set", text, "write tdm.epochs=2")])
        try:
            found.setdefault(method, {})[parameter] = json.loads(value)
        except ValueError:
            problem = Problem(f"{value!r} is not JSON", "--set", text, f"write text as '\"{value}\"'")
            raise ConfigError([problem]) from None
    return found
