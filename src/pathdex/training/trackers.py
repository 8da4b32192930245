"""Callbacks that write the figures of a training to TensorBoard, MLflow or Weights & Biases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pathdex.errors import ConfigError, MissingExtraError, Problem, did_you_mean
from pathdex.storage.atomic import atomic_write
from pathdex.training.callbacks import Callback

RUN_ID = "tracked.json"
"""In the folder of a training: by tracker, the id of its run, so that a resumed training continues it."""


def figures(record: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers of a record, named `PHASE/NAME`."""
    for name, value in record.items():
        if isinstance(value, int | float) and name != "number":
            yield f"{record['phase']}/{name}", value


class TensorBoard(Callback):
    """Writes each figure of a record as a TensorBoard scalar (extra `tensorboard`)."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtraError("tensorboard", "tensorboard", "writing TensorBoard logs") from error
        self.writer = SummaryWriter(str(folder))

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        for name, value in figures(record):
            self.writer.add_scalar(name, value, record["number"])
        self.writer.flush()

    def on_train_end(self) -> None:
        self.writer.close()


class MLflow(Callback):
    """Logs hyper-parameters and the figures of each epoch to an MLflow run (extra `mlflow`).

    The run is the active one, or a new one as MLflow's environment variables say (`MLFLOW_TRACKING_URI`,
    `MLFLOW_EXPERIMENT_NAME` ...). With `folder`, a resumed training continues its run.
    """

    def __init__(
        self, *, params: Mapping[str, Any] | None = None, name: str | None = None, folder: Path | None = None
    ) -> None:
        try:
            import mlflow
        except ImportError as error:
            raise MissingExtraError("mlflow", "mlflow", "logging to MLflow") from error
        self.mlflow: Any = mlflow
        self.params, self.name, self.folder = dict(params or {}), name, folder
        self.status = "FINISHED"
        self.own = False

    def on_train_begin(self) -> None:
        run = self.mlflow.active_run()
        self.own = run is None
        if run is None:
            earlier = _stored_id(self.folder, "mlflow")
            run = self.mlflow.start_run(run_id=earlier, run_name=None if earlier else self.name)
        _store_id(self.folder, "mlflow", run.info.run_id)
        self.mlflow.log_params(self.params)

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        self.mlflow.log_metrics(dict(figures(record)), step=record["number"])

    def on_train_error(self, error: BaseException) -> None:
        self.status = "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"

    def on_train_end(self) -> None:
        if self.own:
            self.mlflow.end_run(self.status)


class WandB(Callback):
    """Logs hyper-parameters and the figures of each epoch to Weights & Biases (extra `wandb`).

    The run is the active one, or a new one as the environment variables of wandb say (`WANDB_PROJECT`, `WANDB_MODE`
    ...). With `folder`, files are written there, and a resumed training continues its run.
    """

    def __init__(
        self, *, params: Mapping[str, Any] | None = None, name: str | None = None, folder: Path | None = None
    ) -> None:
        try:
            import wandb
        except ImportError as error:
            raise MissingExtraError("wandb", "wandb", "logging to Weights & Biases") from error
        self.wandb: Any = wandb
        self.params, self.name, self.folder = dict(params or {}), name, folder
        self.run: Any = None
        self.exit_code, self.own = 0, False

    def on_train_begin(self) -> None:
        self.own = self.wandb.run is None
        self.run = self.wandb.run or self.wandb.init(
            id=_stored_id(self.folder, "wandb"),
            name=self.name,
            resume="allow",
            dir=None if self.folder is None else str(self.folder),
        )
        _store_id(self.folder, "wandb", self.run.id)
        self.run.config.update(self.params, allow_val_change=True)

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        phase = record["phase"]
        # Each phase counts its own epochs.
        self.run.define_metric(f"{phase}/*", step_metric=f"{phase}/epoch")
        self.run.log({**dict(figures(record)), f"{phase}/epoch": record["number"]})

    def on_train_error(self, error: BaseException) -> None:
        self.exit_code = 1

    def on_train_end(self) -> None:
        if self.own and self.run is not None:
            self.run.finish(exit_code=self.exit_code)


TRACKERS = ("tensorboard", "mlflow", "wandb")


def make_tracker(tracker: str, folder: Path, params: Mapping[str, Any]) -> Callback:
    """A tracker by name, for the training in a folder."""
    if tracker not in TRACKERS:
        rule = f"must be among {', '.join(TRACKERS)}{did_you_mean(tracker, TRACKERS)}"
        raise ConfigError([Problem(rule, "trackers", tracker)])
    if tracker == "tensorboard":
        return TensorBoard(folder / "tensorboard")
    kind = MLflow if tracker == "mlflow" else WandB
    return kind(params=params, name=folder.name, folder=folder)


def _stored_id(folder: Path | None, tracker: str) -> str | None:
    found = None if folder is None else _stored(folder).get(tracker)
    return found if isinstance(found, str) else None


def _store_id(folder: Path | None, tracker: str, run_id: str) -> None:
    if folder is not None:
        with atomic_write(folder / RUN_ID) as stream:
            stream.write((json.dumps({**_stored(folder), tracker: run_id}) + "\n").encode())


def _stored(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / RUN_ID).read_text()))
    except (OSError, ValueError, TypeError):
        return {}
