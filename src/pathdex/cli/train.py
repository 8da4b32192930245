"""`pathdex train`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from pathdex.cli.command import split_list
from pathdex.cli.console import err, is_quiet, out, silence
from pathdex.cli.options import RUN_PANEL, takes_items, takes_parameters, takes_reading, takes_run_options, takes_split
from pathdex.cli.progress import training_callbacks
from pathdex.config import PRESETS
from pathdex.training.distributed.launch import TIMEOUT

if TYPE_CHECKING:
    from pathdex.data.splits import Split
    from pathdex.experiments.run_request import TrainOptions
    from pathdex.experiments.runs import Run
    from pathdex.training.distributed.launch import WorkerPlace


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
    config: Annotated[Path | None, Option(help="TOML file with hyper-parameters.", metavar="FILE")] = None,
    preset: Annotated[str | None, Option(help=f"Named hyper-parameters: {', '.join(PRESETS)}.")] = None,
    workers: Annotated[
        int | None,
        Option(
            help="Train with so many processes on this machine. For several machines, start `torchrun ... -m pathdex "
            "train ...` on each. [default: 1]",
            rich_help_panel=RUN_PANEL,
            metavar="N",
        ),
    ] = None,
    worker_timeout: Annotated[
        float,
        Option(help="Seconds after which workers give up waiting for one of them.", rich_help_panel=RUN_PANEL, min=1.0),
    ] = TIMEOUT,
    tensorboard: Annotated[
        bool, Option("--tensorboard", help="Write TensorBoard logs to RUN/tensorboard.", rich_help_panel=RUN_PANEL)
    ] = False,
) -> None:
    """Train Deep Retrieval. RUN gets the model, the held-out users, a checkpoint and a log.

    A config file overrides the preset, and flags override both.

    Examples:

        pathdex train ratings.csv --out runs/first --min-rating 4 --min-interactions 10

        pathdex train events.parquet --out runs/paper --preset paper-amazon-books --test-users 5000

        pathdex train ratings.csv --out runs/first --items movies.csv --item-columns genres,year

        pathdex train --out runs/first --resume

        pathdex train ratings.csv --out runs/first --workers 2

        torchrun --nproc-per-node 2 -m pathdex train ratings.csv --out runs/first
    """
    from pathdex.config import layered_values
    from pathdex.experiments.run_request import TrainOptions
    from pathdex.experiments.runs import Run
    from pathdex.system import TENSORBOARD
    from pathdex.training.distributed.launch import check_workers, worker_place

    if "columns" in items:
        items["columns"] = split_list(items["columns"], "--item-columns")
    given = TrainOptions(source, reading, split, layered_values(preset, config, parameters), run_options, items)
    if tensorboard:
        TENSORBOARD.require()
    place = worker_place()
    number = check_workers(workers, place)
    if place is not None:
        train_as_worker(folder, given, place, resume, tensorboard, worker_timeout)
        return
    run, prepared = open_run(folder, given, resume)
    if run.finished:
        err().print(f"{folder} is already finished.")
    try:
        if number > 1 and not run.finished:
            del prepared
            launch_workers(folder, number, worker_timeout, tensorboard)
            model = Run.open(folder).model()
        else:
            model = run.train(prepared, callbacks=training_callbacks(), tensorboard=tensorboard)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"\nInterrupted. Resume with: pathdex train --out {folder} --resume") from None
    console = out()
    console.print(f"{run.bundle}: {model.health()!r}")
    console.print(f"Evaluate it with: pathdex evaluate {folder}")


def open_run(folder: Path, given: TrainOptions, resume: bool) -> tuple[Run, Split | None]:
    """The run folder, to resume or new, and its split if it is new."""
    from pathdex.data.describe import columns_read
    from pathdex.experiments.run_request import check_resume, make_run_request
    from pathdex.experiments.runs import Run
    from pathdex.experiments.splitting import few_users_note

    log, source = err(), given.source
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
        if note := few_users_note(prepared.test):
            err(always=True).print(f"Warning: {note}", style="yellow")
        if details is not None:
            missing = details.missing(prepared.train.items)
            log.print(f"items: {details!r}; {missing:,} of {prepared.train.num_items:,} items have no row")
        run = Run.create(folder, prepared, request.config, request.options, details=details, **request.to_dict())
    return run, prepared


def launch_workers(folder: Path, workers: int, timeout: float, tensorboard: bool) -> None:
    """Train a run folder with several processes on this machine."""
    from pathdex.training.distributed.launch import launch

    switches = [*(["--tensorboard"] if tensorboard else []), *(["--quiet"] if is_quiet() else [])]
    given = ["train", "--out", str(folder), "--resume", "--workers", str(workers), "--worker-timeout", str(timeout)]
    launch(workers, [*given, *switches])


def train_as_worker(
    folder: Path, given: TrainOptions, place: WorkerPlace, resume: bool, tensorboard: bool, timeout: float
) -> None:
    """Train as one of the workers that torchrun has started. The first one reads the data and prints."""
    from pathdex.experiments.runs import Run
    from pathdex.training.distributed.launch import joined

    # A worker that torchrun restarts continues.
    resume = resume or (place.restarts > 0 and folder.exists())
    device = given.options.get("device", "cpu")
    quiet = is_quiet() or place.rank > 0
    with silence(messages=quiet, tables=quiet), joined(place, device, timeout) as group, warnings.catch_warnings():
        assert group is not None
        if not group.is_first:
            warnings.simplefilter("ignore")
        group.first_only(lambda: open_run(folder, given, resume))
        run = Run.open(folder)
        run.train_share(group, place.threads, callbacks=training_callbacks(), tensorboard=tensorboard)
        if group.is_first:
            err().print(f"{run.bundle}: trained by {group.size} workers")
