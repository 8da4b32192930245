"""`pathdex tune`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from typer import Option

from pathdex.cli.command import write_result
from pathdex.cli.console import err, out
from pathdex.cli.options import DataPath, JsonFile, takes_parameters, takes_reading, takes_run_options, takes_split
from pathdex.cli.progress import Log
from pathdex.config import PRESETS
from pathdex.experiments.trials import DEFAULT_TRIALS, FINISHED, TuneProgress, TuneTrial
from pathdex.tables import TextTable

if TYPE_CHECKING:
    from pathdex.experiments.run_request import RunRequest
    from pathdex.experiments.trials import TuneResult

SHOWN = 5
"""Trials in the table."""


@takes_parameters
@takes_split
@takes_reading
@takes_run_options
def tune(
    reading: dict[str, Any],
    split: dict[str, Any],
    run_options: dict[str, Any],
    parameters: dict[str, Any],
    source: DataPath,
    folder: Annotated[Path, Option("--out", help="The folder of the study, new or to resume.", metavar="STUDY")],
    trials: Annotated[int, Option(help="Trainings in all, those of earlier calls included.")] = DEFAULT_TRIALS,
    minutes: Annotated[float | None, Option(help="Begin no trial after this time.")] = None,
    search: Annotated[
        list[str] | None,
        Option(
            help="Hyper-parameter to search, as in dropout, dropout=0.1..0.6, learning_rate=1e-4..1e-2:log or "
            "encoder=gru,pooled. Repeatable. [default: embedding_dim, dropout, batch_size, learning rates, "
            "paths_per_item, path_size]",
            metavar="NAME[=VALUES]",
        ),
    ] = None,
    n: Annotated[int, Option("--n", help="Items recommended per user.")] = 10,
    config: Annotated[Path | None, Option(help="TOML file with fixed hyper-parameters.", metavar="FILE")] = None,
    preset: Annotated[str | None, Option(help=f"Fixed hyper-parameters by name: {', '.join(PRESETS)}.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Search for hyper-parameters on the validation users, with Optuna. Test users are not used.

    STUDY gets best.toml for `pathdex train --config`, and study.sqlite with all trials. The first trial has the
    defaults. Trials that are worse than the median of the earlier ones are stopped early. Re-run the command to resume.
    Flags of hyper-parameters fix them.

    Examples:

        pathdex tune ratings.csv --out studies/first --min-rating 4 --trials 30

        pathdex tune ratings.csv --out studies/second --search dropout --search path_size=4..32:log --minutes 60

        pathdex train ratings.csv --out runs/tuned --min-rating 4 --config studies/first/best.toml
    """
    from pathdex.config import layered_values
    from pathdex.data.describe import columns_read
    from pathdex.experiments.run_request import TrainOptions, make_run_request
    from pathdex.experiments.search_space import describe_axis, make_space
    from pathdex.experiments.tune import check_limits
    from pathdex.experiments.tune import tune as search_parameters
    from pathdex.system import OPTUNA

    OPTUNA.require()
    check_limits(n, trials, minutes)
    fixed = layered_values(preset, config, parameters)
    request = make_run_request(TrainOptions(source, reading, split, fixed, run_options))
    space = make_space(search, fixed)
    log = err()
    log.print(f"reading {source}")
    prepared = request.prepare()
    log.print(f"columns: {columns_read(prepared.train)}")
    log.print(f"training on {prepared.train!r}; comparing on {prepared.valid!r}")
    log.print("searching " + ", ".join(f"{name} {describe_axis(axis)}" for name, axis in space.items()))
    try:
        with _shown_trials() as progress:
            found = search_parameters(
                prepared,
                folder,
                search=search,
                trials=trials,
                minutes=minutes,
                n=n,
                parameters=fixed,
                options=request.options,
                identity={name: value for name, value in request.to_dict().items() if name != "items"},
                progress=progress,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("\nInterrupted. Re-run the command to resume; finished trials are kept.") from None
    console = out()
    write_result(json_file, found.to_dict())
    console.print(_table(found, n))
    console.print(f"{found.toml}: trial {found.best.number}, {_values(found.best.parameters)}")
    console.print(f"Train with it: {train_command(request, found.toml)}")


def train_command(request: RunRequest, toml: Path | None) -> str:
    """The command that trains on the same data with the best hyper-parameters."""
    words = ["pathdex", "train", str(request.source), "--out", "runs/tuned", "--config", str(toml)]
    flags = {**request.reading, **{"split" if name == "kind" else name: one for name, one in request.split.items()}}
    if flags.get("split") == "users":
        del flags["split"]
    for name, value in {**flags, "seed": request.options.seed or None}.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            words += [f"--{flag}", str(value)]
    return shlex.join(words)


def _table(found: TuneResult, n: int) -> TextTable:
    done = [one for one in found.trials if one.state == FINISHED]
    best = sorted(done, key=lambda one: -(one.f_measure or 0.0))[:SHOWN]
    first = [one for one in done if one.number == 0 and one not in best]
    rows = []
    for one in [*best, *first]:
        name = f"{one.number} (defaults)" if one.number == 0 else str(one.number)
        rows.append([name, f"{100 * (one.f_measure or 0.0):.2f}", f"{one.seconds:,.0f}"])
    title = f"Best of {len(found.trials)} trials ({len(done)} finished): F@{n} on validation users, in %"
    return TextTable(title, ["trial", "F", "seconds"], rows)


@contextmanager
def _shown_trials() -> Iterator[TuneProgress]:
    """A line per trial and, on a terminal, a bar with the time left."""
    console = err()
    if not console.is_terminal:
        yield TuneLines(Log(console))
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with RichProgress(*columns, TimeRemainingColumn(), console=console, transient=True) as bars:
        yield TuneBar(bars)


class TuneLines(TuneProgress):
    """A line before and after each trial, and now and then one within."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.total = 0

    def on_begin(self, finished: int, total: int) -> None:
        self.total = total
        self.log.print(f"{total} trials, {finished} already finished")

    def on_trial_begin(self, number: int, parameters: Mapping[str, Any]) -> None:
        self.log.print(f"[{number + 1}/{self.total}] {_values(parameters)}")

    def on_epoch(self, record: Mapping[str, Any]) -> None:
        self.log.progress(f"  {_epoch(record)}")

    def on_trial_end(self, trial: TuneTrial, best: TuneTrial | None) -> None:
        self.log.print(f"  {_outcome(trial, best)}")


class TuneBar(TuneProgress):
    """A bar over the trials."""

    def __init__(self, bars: RichProgress) -> None:
        self.bars = bars
        self.task: TaskID = bars.add_task("trials", total=None)

    def on_begin(self, finished: int, total: int) -> None:
        self.bars.update(self.task, completed=finished, total=total)

    def on_trial_begin(self, number: int, parameters: Mapping[str, Any]) -> None:
        self.bars.console.print(f"trial {number}: {_values(parameters)}", highlight=False)

    def on_epoch(self, record: Mapping[str, Any]) -> None:
        self.bars.update(self.task, description=_epoch(record))

    def on_trial_end(self, trial: TuneTrial, best: TuneTrial | None) -> None:
        self.bars.advance(self.task)
        self.bars.console.print(f"  {_outcome(trial, best)}", highlight=False)


def _epoch(record: Mapping[str, Any]) -> str:
    figure = f", validation F {100 * record['held_out_f']:.2f}%" if "held_out_f" in record else ""
    return f"{record['phase']} {record['number']}{figure}"


def _outcome(trial: TuneTrial, best: TuneTrial | None) -> str:
    shown = trial.state if trial.f_measure is None else f"F {100 * trial.f_measure:.2f}%"
    if trial.error is not None:
        return f"failed: {trial.error}"
    if best is None:
        return f"{shown} in {trial.seconds:,.0f} s"
    return f"{shown} in {trial.seconds:,.0f} s; best: trial {best.number}, F {100 * (best.f_measure or 0):.2f}%"


def _values(parameters: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in parameters.items()
    )
