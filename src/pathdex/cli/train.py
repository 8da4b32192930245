"""`pathdex train`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from pathdex.cli.command import split_list, write_result
from pathdex.cli.console import err, is_quiet, out, silence
from pathdex.cli.options import (
    RUN_PANEL,
    JsonFile,
    takes_items,
    takes_parameters,
    takes_reading,
    takes_run_options,
    takes_split,
)
from pathdex.cli.progress import training_callbacks
from pathdex.config import PRESETS
from pathdex.errors import ConfigError, Problem
from pathdex.training.distributed.launch import TIMEOUT

if TYPE_CHECKING:
    from pathdex.data.splits import Split
    from pathdex.experiments.run_request import TrainOptions
    from pathdex.experiments.runs import Run
    from pathdex.index.health import IndexHealth
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
    workers: Annotated[
        int | None,
        Option(
            help="Train with so many processes: on this machine, or on a Ray cluster with --ray. Without Ray, start "
            "`torchrun ... -m pathdex train ...` on each of several machines. [default: 1]",
            rich_help_panel=RUN_PANEL,
            metavar="N",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        Option(
            help="Train with the workers of Ray Train, which replaces those that are lost: HOST:PORT of a cluster that "
            "this machine belongs to, auto to find it, or local to start one here. All nodes must see RUN at the same "
            "path. Each worker reserves --threads CPUs, by default one.",
            rich_help_panel=RUN_PANEL,
            metavar="ADDRESS",
        ),
    ] = None,
    worker_timeout: Annotated[
        float,
        Option(help="Seconds after which workers give up waiting for one of them.", rich_help_panel=RUN_PANEL, min=1.0),
    ] = TIMEOUT,
    sharded: Annotated[
        bool,
        Option(
            "--sharded-bundle",
            help="Each worker writes the shard of its own items to RUN/shards, as `pathdex shard` would, so no worker "
            "needs memory for the whole model.",
            rich_help_panel=RUN_PANEL,
        ),
    ] = False,
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
    json_file: JsonFile = None,
) -> None:
    """Train Deep Retrieval. RUN gets the model, the held-out users, a checkpoint and a log.

    A config file overrides the preset, and flags override both.

    Examples:

        pathdex train ratings.csv --out runs/first --min-rating 4 --min-interactions 10

        pathdex train events.parquet --out runs/paper --preset paper-amazon-books --test-users 5000

        pathdex train ratings.csv --out runs/first --items movies.csv --item-columns genres,year

        pathdex train --out runs/first --resume

        pathdex train ratings-of-june.csv --out runs/june --from runs/may

        pathdex train ratings.csv --out runs/first --workers 2

        torchrun --nproc-per-node 2 -m pathdex train ratings.csv --out runs/first

        pathdex train /shared/ratings.csv --out /shared/runs/first --ray auto --workers 8
    """
    from pathdex.config import layered_values
    from pathdex.experiments.run_request import TrainOptions
    from pathdex.system import MLFLOW, TENSORBOARD, WANDB
    from pathdex.training.distributed.launch import check_workers, worker_place

    if "columns" in items:
        items["columns"] = split_list(items["columns"], "--item-columns")
    values = layered_values(preset, config, parameters)
    given = TrainOptions(source, reading, split, values, run_options, items, earlier, recording, sharded)
    asked = {"tensorboard": (tensorboard, TENSORBOARD), "mlflow": (mlflow, MLFLOW), "wandb": (wandb, WANDB)}
    trackers = [name for name, (wanted, _) in asked.items() if wanted]
    for name in trackers:
        asked[name][1].require()
    place = worker_place()
    number = check_workers(workers, place)
    if place is not None:
        if ray is not None:
            raise ConfigError([Problem("starts workers itself", "ray", ray, "leave it out under torchrun")])
        train_as_worker(folder, given, place, resume, trackers, worker_timeout, json_file)
        return
    with joined_cluster(ray, folder, given, resume, number) as cluster:
        run, prepared = open_run(folder, given, resume, number)
        if run.finished:
            err().print(f"{folder} is already finished.")
        try:
            if cluster is not None and not run.finished:
                del prepared
                train_on_cluster(cluster, run, number, worker_timeout, trackers)
            elif number > 1 and not run.finished:
                del prepared
                launch_workers(folder, number, worker_timeout, trackers)
            elif not run.finished:
                run.train(prepared, callbacks=training_callbacks(), trackers=trackers)
        except KeyboardInterrupt:
            again = f"pathdex train --out {folder} --resume{resumed_on(number, ray)}"
            raise KeyboardInterrupt(f"\nInterrupted. Resume with: {again}") from None
    result, health = finished(run)
    write_result(json_file, {"run": str(run.path), "model": str(result), "health": health.to_dict()})
    console = out()
    console.print(f"{result}: {health!r}")
    console.print(f"Evaluate it with: pathdex evaluate {folder}")


def resumed_on(workers: int, ray: str | None) -> str:
    """The options that resume a training in the same place."""
    return (f" --workers {workers}" if workers > 1 else "") + (f" --ray {ray}" if ray else "")


def open_run(folder: Path, given: TrainOptions, resume: bool, workers: int) -> tuple[Run, Split | None]:
    """The run folder, to resume or new, and its split if it is new."""
    from pathdex.config import Config
    from pathdex.data.describe import columns_read
    from pathdex.experiments.run_request import check_resume, make_run_request
    from pathdex.experiments.runs import Run
    from pathdex.experiments.splitting import few_users_note
    from pathdex.training.distributed.parts import check_parameters

    log = err()
    if resume:
        run = Run.open(folder)
        check_resume(run.request, given)
        if not run.finished:
            check_parameters(
                Config.from_stored(run.request["config"]),
                workers,
                starts="from" in run.request,
                records=given.recording,
                sharded=run.is_sharded,
            )
        return run, None
    Run.check_new(folder)
    request = make_run_request(given)
    starts = request.start is not None
    check_parameters(request.config, workers, starts=starts, records=given.recording, sharded=given.sharded)
    log.print(f"reading {given.source}")
    details = request.details()
    prepared = request.prepare()
    log.print(f"columns: {columns_read(prepared.train)}")
    log.print(f"training on {prepared.train!r}; held out: {prepared.valid!r}, {prepared.test!r}")
    for note in filter(None, (few_users_note(prepared.test), request.start_note)):
        err(always=True).print(f"Warning: {note}", style="yellow")
    if request.start is not None:
        known = request.start.model.items.codes(prepared.train.items.first_ids(prepared.train.num_items)) >= 0
        log.print(f"starting from {given.start}: it knows {known.sum():,} of {len(known):,} items")
    if details is not None:
        missing = details.missing(prepared.train.items)
        log.print(f"items: {details!r}; {missing:,} of {prepared.train.num_items:,} items have no row")
    check_parameters(request.config, workers, prepared.train.num_items)
    run = Run.create(folder, prepared, request.config, request.options, details=details, **request.to_dict())
    return run, prepared


def launch_workers(folder: Path, workers: int, timeout: float, trackers: Sequence[str]) -> None:
    """Train a run folder with several processes on this machine."""
    from pathdex.training.distributed.launch import launch

    switches = [*(f"--{name}" for name in trackers), *(["--quiet"] if is_quiet() else [])]
    given = ["train", "--out", str(folder), "--resume", "--workers", str(workers), "--worker-timeout", str(timeout)]
    launch(workers, [*given, *switches])


@contextmanager
def joined_cluster(
    address: str | None, folder: Path, given: TrainOptions, resume: bool, workers: int
) -> Iterator[Any | None]:
    """The Ray cluster at an address, which has room for the workers; None without an address."""
    if address is None:
        yield None
        return
    from pathdex.config import RunOptions
    from pathdex.experiments.ray_training import check_cluster, training_cluster
    from pathdex.experiments.run_request import make_run_request
    from pathdex.experiments.runs import Run

    if resume:
        options = RunOptions(**Run.open(folder).request["options"])
    else:
        Run.check_new(folder)
        options = make_run_request(given).options
    err().print(f"connecting to Ray: {address}")
    # Threads of Ray print the end of other processes on standard output, which is for results.
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), training_cluster(address) as cluster:
        check_cluster(cluster, workers, options)
        yield cluster


def train_on_cluster(cluster: Any, run: Run, workers: int, timeout: float, trackers: Sequence[str]) -> None:
    """Train a run folder with workers on a Ray cluster."""
    from pathdex.experiments.ray_training import train_on_ray

    def notify(line: str) -> None:
        err(always=True).print(line, style="yellow")

    callbacks = training_callbacks()
    train_on_ray(cluster, run, workers, timeout=timeout, callbacks=callbacks, trackers=trackers, notify=notify)
    err().print(f"{run.shards if run.is_sharded else run.bundle}: trained by {workers} workers on Ray")


def train_as_worker(
    folder: Path,
    given: TrainOptions,
    place: WorkerPlace,
    resume: bool,
    trackers: Sequence[str],
    timeout: float,
    json_file: Path | None,
) -> None:
    """Train as one of the workers that torchrun has started. The first one reads the data and prints."""
    from pathdex.experiments.runs import Run
    from pathdex.training.distributed.agreement import check_agreement
    from pathdex.training.distributed.launch import joined

    asked = {**given.facts(), "resume": resume}
    device = given.options.get("device", "cpu")
    quiet = is_quiet() or place.rank > 0
    with silence(messages=quiet, tables=quiet), joined(place, device, timeout) as group, warnings.catch_warnings():
        assert group is not None
        if not group.is_first:
            warnings.simplefilter("ignore")
        check_agreement(group, asked)
        # Workers that torchrun restarts continue. Each machine counts only the restarts that its own workers caused.
        resume = resume or (group.largest(place.restarts) > 0 and folder.exists())
        group.first_only(lambda: open_run(folder, given, resume, group.size))
        run = Run.open(folder)
        run.train_share(group, place.threads, callbacks=training_callbacks(), trackers=trackers)
        if group.is_first:
            result, health = finished(run)
            write_result(json_file, {"run": str(run.path), "model": str(result), "health": health.to_dict()})
            err().print(f"{result}: trained by {group.size} workers")


def finished(run: Run) -> tuple[Path, IndexHealth]:
    """What a run has trained, a bundle or a folder of shards, and the health of the whole index."""
    from pathdex.recommenders.local_shards import LocalShards

    if run.shards.exists():
        health = LocalShards.open(run.shards).whole.health
        assert health is not None
        return run.shards, health
    return run.bundle, run.model().health()
