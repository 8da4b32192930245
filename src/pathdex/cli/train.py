"""`pathdex train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pathdex.cli.command import INTERRUPTED
from pathdex.cli.console import LogLines, err, out
from pathdex.cli.parameters import takes_parameters
from pathdex.cli.reading import takes_reading
from pathdex.cli.splitting import as_split, takes_split
from pathdex.config import PRESETS

RUNNING = "How it is run"


@takes_parameters
@takes_split
@takes_reading
def train(
    reading: dict[str, Any],
    held_out: dict[str, Any],
    parameters: dict[str, Any],
    folder: Annotated[Path, typer.Option("--out", help="The run folder to make, or to go on with.", metavar="RUN")],
    source: Annotated[
        Path | None,
        typer.Argument(
            help="The interactions: see `pathdex data describe --help`. Not needed with --resume.", metavar="DATA"
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run, exactly.")] = False,
    config: Annotated[
        Path | None, typer.Option(help="TOML file of hyper-parameters; overrides the preset.", metavar="FILE")
    ] = None,
    preset: Annotated[str | None, typer.Option(help=f"Named start: {', '.join(PRESETS)}.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of every random choice; default 0.", rich_help_panel=RUNNING)
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu (default), cuda, cuda:0 ...", rich_help_panel=RUNNING)] = None,
    threads: Annotated[int | None, typer.Option(help="Default: all cores.", rich_help_panel=RUNNING)] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard logs to RUN.", rich_help_panel=RUNNING)
    ] = False,
) -> None:
    """Train Deep Retrieval on interactions. RUN gets the model, the held-out users, a checkpoint and a log.

    A preset is overridden by a config file, and both by flags.

    Examples:

        pathdex train ratings.csv --out runs/first --min-rating 4 --min-interactions 10

        pathdex train events.parquet --out runs/paper --preset paper-amazon-books --test-users 5000

        pathdex train --out runs/first --resume
    """
    from pathdex.config import layered_values
    from pathdex.experiments.run_request import Given, check_request, check_resume
    from pathdex.experiments.runs import Run
    from pathdex.system import TENSORBOARD
    from pathdex.training.callbacks import interactive

    given = Given(
        source,
        reading,
        as_split(held_out),
        layered_values(preset, config, parameters),
        _given(seed=seed, device=device, threads=threads),
    )
    if tensorboard:
        TENSORBOARD.require()
    note = err()
    if resume:
        run = Run.open(folder)
        check_resume(run.request, given)
        prepared = None
    else:
        Run.check_new(folder)
        request = check_request(given)
        note.print(f"reading {source}")
        prepared = request.prepare()
        note.print(f"{prepared.train!r} to train on; held out: {prepared.valid!r}, {prepared.test!r}")
        run = Run.create(folder, prepared, request.config, request.options, **request.to_dict())
    if run.finished:
        note.print(f"{folder} is finished already.")
    try:
        model = run.train(prepared, callbacks=None if interactive() else [LogLines()], tensorboard=tensorboard)
    except KeyboardInterrupt:
        note.print(f"\nInterrupted. Go on with: pathdex train --out {folder} --resume")
        raise typer.Exit(INTERRUPTED) from None
    console = out()
    console.print(f"{run.bundle}: {model.health()!r}")
    console.print(f"Evaluate it with: pathdex evaluate {folder}")


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
