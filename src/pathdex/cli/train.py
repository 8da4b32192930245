"""`pathdex train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from pathdex.cli.command import split_list
from pathdex.cli.console import err, out
from pathdex.cli.options import RUN_PANEL, takes_items, takes_parameters, takes_reading, takes_run_options, takes_split
from pathdex.cli.progress import training_callbacks
from pathdex.config import PRESETS


@takes_parameters
@takes_split
@takes_reading
@takes_run_options
@takes_items
def train(
    items: dict[str, Any],
    reading: dict[str, Any],
    split: dict[str, Any],
    run_options: dict[str, Any],
    parameters: dict[str, Any],
    folder: Annotated[Path, Option("--out", help="The run folder to create, or to resume.", metavar="RUN")],
    source: Annotated[
        str | None,
        Argument(help="Interactions; see `pathdex data describe --help`. Not needed with --resume.", metavar="DATA"),
    ] = None,
    resume: Annotated[
        bool, Option("--resume", help="Resume an interrupted run; the result is the same as if it had not stopped.")
    ] = False,
    earlier: Annotated[
        Path | None,
        Option(
            "--from",
            help="Start from the model of this run: known items keep their vectors and paths as a start, new ones "
            "join. Columns, filters and hyper-parameters are those of RUN where no flag says otherwise.",
            metavar="RUN",
        ),
    ] = None,
    config: Annotated[Path | None, Option(help="TOML file with hyper-parameters.", metavar="FILE")] = None,
    preset: Annotated[str | None, Option(help=f"Named hyper-parameters: {', '.join(PRESETS)}.")] = None,
    tensorboard: Annotated[
        bool, Option("--tensorboard", help="Write TensorBoard logs to RUN/tensorboard.", rich_help_panel=RUN_PANEL)
    ] = False,
    mlflow: Annotated[
        bool, Option("--mlflow", help="Log to MLflow, as MLFLOW_TRACKING_URI says.", rich_help_panel=RUN_PANEL)
    ] = False,
    wandb: Annotated[
        bool, Option("--wandb", help="Log to Weights & Biases, as WANDB_MODE says.", rich_help_panel=RUN_PANEL)
    ] = False,
    recording: Annotated[
        bool | None,
        Option(
            "--recording/--no-recording",
            help="Keep sampled paths of every round and 1,000 sample histories without user ids in RUN/recording, for "
            "`pathdex explore`. [default: --recording]",
            rich_help_panel=RUN_PANEL,
        ),
    ] = None,
) -> None:
    """Train Deep Retrieval. RUN gets the model, the held-out users, a checkpoint and a log.

    A config file overrides the preset, and flags override both.

    Examples:

        pathdex train ratings.csv --out runs/first --min-rating 4 --min-interactions 10

        pathdex train events.parquet --out runs/paper --preset paper-amazon-books --test-users 5000

        pathdex train ratings.csv --out runs/first --items movies.csv --item-columns genres,year

        pathdex train --out runs/first --resume

        pathdex train ratings-of-june.csv --out runs/june --from runs/may
    """
    from pathdex.config import layered_values
    from pathdex.data.describe import columns_read
    from pathdex.experiments.run_request import TrainOptions, check_resume, make_run_request
    from pathdex.experiments.runs import Run
    from pathdex.experiments.splitting import few_users_note
    from pathdex.system import MLFLOW, TENSORBOARD, WANDB

    if "columns" in items:
        items["columns"] = split_list(items["columns"], "--item-columns")
    given = TrainOptions(
        source, reading, split, layered_values(preset, config, parameters), run_options, items, earlier, recording
    )
    asked = {"tensorboard": (tensorboard, TENSORBOARD), "mlflow": (mlflow, MLFLOW), "wandb": (wandb, WANDB)}
    trackers = [name for name, (wanted, _) in asked.items() if wanted]
    for name in trackers:
        asked[name][1].require()
    log = err()
    if resume:
        run = Run.open(folder)
        check_resume(run.request, given)
        prepared = None
    else:
        Run.check_new(folder)
        request = make_run_request(given)
        log.print(f"reading {source}")
        details = request.details()
        prepared = request.prepare()
        log.print(f"columns: {columns_read(prepared.train)}")
        log.print(f"training on {prepared.train!r}; held out: {prepared.valid!r}, {prepared.test!r}")
        for note in filter(None, (few_users_note(prepared.test), request.start_note)):
            err(always=True).print(f"Warning: {note}", style="yellow")
        if request.start is not None:
            known = request.start.model.items.codes(prepared.train.items.first_ids(prepared.train.num_items)) >= 0
            log.print(f"starting from {earlier}: it knows {known.sum():,} of {len(known):,} items")
        if details is not None:
            missing = details.missing(prepared.train.items)
            log.print(f"items: {details!r}; {missing:,} of {prepared.train.num_items:,} items have no row")
        run = Run.create(folder, prepared, request.config, request.options, details=details, **request.to_dict())
    if run.finished:
        log.print(f"{folder} is already finished.")
    try:
        model = run.train(prepared, callbacks=training_callbacks(), trackers=trackers)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"\nInterrupted. Resume with: pathdex train --out {folder} --resume") from None
    console = out()
    console.print(f"{run.bundle}: {model.health()!r}")
    console.print(f"Evaluate it with: pathdex evaluate {folder}")
