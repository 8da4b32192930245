"""`pathdex reproduce`."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from pathdex.cli.command import INTERRUPTED, words
from pathdex.cli.console import err, out, table
from pathdex.cli.reading import DataPath, takes_reading
from pathdex.cli.splitting import as_split, takes_split
from pathdex.cli.steps import steps_display
from pathdex.cli.train import RUNNING
from pathdex.errors import ConfigError


@takes_split
@takes_reading
def reproduce(
    reading: dict[str, Any],
    held_out: dict[str, Any],
    source: DataPath,
    folder: Annotated[Path, typer.Option("--out", help="The folder of the report, new or begun.", metavar="REPORT")],
    preset: Annotated[
        str | None,
        typer.Option(
            help="movielens-20m and amazon-books with the paper's settings, movielens-1m, or none. [default: by the "
            "name of the file]"
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Some of the methods of docs/baselines.md. [default: all that are installed]")
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="Each draws the held-out users and trains. [default: 0,1,2; paper presets 0 to 4]"),
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", help="Items recommended per user. [default: 10, or the preset's]")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: one seed, few users and epochs, nothing tuned.")
    ] = False,
    tune: Annotated[bool, typer.Option("--tune/--no-tune", help="Tune every method on the validation users.")] = True,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity/--no-sensitivity", help="Study K, D, J, B and alpha of Deep Retrieval.")
    ] = True,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Fix a hyper-parameter, the value as JSON: tdm.epochs=2.", metavar="METHOD.NAME=VALUE"
        ),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu (default), cuda, cuda:0 ...", rich_help_panel=RUNNING)] = None,
    threads: Annotated[int | None, typer.Option(help="Default: all cores.", rich_help_panel=RUNNING)] = None,
) -> None:
    """Repeat the paper's experiments on any data: every method, tables and figures with honest statistics.

    REPORT gets report.html, report.md and results.json. An interrupted call is made again and goes on; what is finished
    is not done again. Methods and seeds can be added later.

    Examples:

        pathdex reproduce ml-1m.zip --out reports/ml-1m --quick

        pathdex reproduce events.parquet --out reports/events --n 50 --methods item-cf,tdm,deep-retrieval,brute-force
    """
    from pathdex.experiments.report.figures import FIGURES
    from pathdex.experiments.report_request import Asked, check_asked, command_line
    from pathdex.experiments.reproduce import reproduce as run_steps

    FIGURES.require()
    asked = Asked(
        source=source,
        reading=reading,
        split=as_split(held_out),
        preset=preset,
        methods=words(methods, "--methods"),
        seeds=_seeds(seeds),
        n=n,
        parameters=_settings(setting or []),
        quick=quick,
        tune=tune,
        sensitivity=sensitivity,
        device=device,
        threads=threads,
    )
    request = check_asked(asked)
    note = err()
    for name, why in request.missing.items():
        note.print(f"{name} is left out: {why}")
    command = command_line(asked, folder)
    try:
        with ExitStack() as stack:
            report = run_steps(request, folder, watcher=steps_display(note, stack), command=command)
    except KeyboardInterrupt:
        note.print(f"\nInterrupted. The same command goes on with {folder}.")
        raise typer.Exit(INTERRUPTED) from None
    console = out()
    console.print(table(f"Top {request.n}, in %, seen items removed", _COLUMNS, _rows(report.results), left=1))
    console.print(f"{report.html}\n{report.markdown}\n{report.json}")


_COLUMNS = ["method", "precision", "recall", "F", "ms per query"]


def _rows(results: dict[str, Any]) -> list[list[str]]:
    times = {row["method"]: row["seconds_per_query"] for row in results["inference_time"] if row["main"]}
    return [
        [
            row["method"],
            *(_spread(row, key) for key in ("precision", "recall", "f_measure")),
            f"{1e3 * times[row['method']]:.3f}",
        ]
        for row in results["comparison"]
        if row["main"] and row["filter_seen"]
    ]


def _spread(row: dict[str, Any], key: str) -> str:
    deviation = row[f"{key}_deviation"]
    return f"{100 * row[key]:.2f}" + ("" if deviation is None else f" ± {100 * deviation:.2f}")


def _seeds(text: str | None) -> list[int]:
    parts = words(text, "--seeds")
    wrong = [part for part in parts if not part.isdecimal()]
    if wrong:
        raise ConfigError([f"--seeds {text!r}: {', '.join(wrong)} must be whole numbers of at least 0; write 0,1,2"])
    return [int(part) for part in parts]


def _settings(settings: list[str]) -> dict[str, dict[str, Any]]:
    """`tdm.epochs=2` and the like, by method."""
    found: dict[str, dict[str, Any]] = {}
    for one in settings:
        name, equals, value = one.partition("=")
        method, dot, parameter = name.partition(".")
        if not equals or not dot or not parameter:
            raise ConfigError([f"--set {one!r}: must be METHOD.NAME=VALUE, as in tdm.epochs=2"])
        try:
            found.setdefault(method, {})[parameter] = json.loads(value)
        except ValueError:
            raise ConfigError([f"--set {one!r}: {value!r} is not JSON; write text as '\"{value}\"'"]) from None
    return found
