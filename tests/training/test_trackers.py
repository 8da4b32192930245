"""Trackers: what they log, which run they continue, and the real libraries without a network."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

import pathdex
from pathdex.errors import ConfigError, MissingExtraError
from pathdex.training.callbacks import following
from pathdex.training.trackers import MLflow, TensorBoard, WandB, figures, make_tracker

RECORD = {"phase": "encoder", "number": 2, "softmax": 0.5, "kept_epoch": 2, "reason": "text", "seconds": 0.1}
FIGURES = {"encoder/softmax": 0.5, "encoder/kept_epoch": 2, "encoder/seconds": 0.1}


class FakeMLflow:
    """The functions of the module that are called."""

    def __init__(self) -> None:
        self.active: Any = None
        self.started: list[Any] = []
        self.ended: list[str] = []
        self.params: dict[str, Any] = {}
        self.metrics: list[Any] = []

    def active_run(self) -> Any:
        return self.active

    def start_run(self, run_id: str | None, run_name: str | None) -> Any:
        self.started.append((run_id, run_name))
        self.active = SimpleNamespace(info=SimpleNamespace(run_id=run_id or "first"))
        return self.active

    def log_params(self, params: dict[str, Any]) -> None:
        self.params |= params

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        self.metrics.append((step, metrics))

    def end_run(self, status: str) -> None:
        self.ended.append(status)
        self.active = None


class FakeWandB:
    """The module and its run in one."""

    def __init__(self) -> None:
        self.run: Any = None
        self.id = "first"
        self.inits: list[dict[str, Any]] = []
        self.logged: list[dict[str, Any]] = []
        self.exits: list[int] = []
        self.metrics: list[tuple[str, str]] = []
        self.config = SimpleNamespace(update=lambda params, allow_val_change: self.inits[-1].update(params))

    def init(self, **given: Any) -> Any:
        self.inits.append(given)
        return self

    def define_metric(self, name: str, step_metric: str) -> None:
        self.metrics.append((name, step_metric))

    def log(self, values: dict[str, Any]) -> None:
        self.logged.append(values)

    def finish(self, exit_code: int) -> None:
        self.exits.append(exit_code)


def test_figures_are_the_numbers_of_a_record() -> None:
    assert dict(figures(RECORD)) == FIGURES


def test_mlflow_gets_parameters_and_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = FakeMLflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    with following([MLflow(params={"depth": 3}, name="mine", folder=tmp_path)]) as callback:
        callback.on_epoch_end(RECORD)
    assert fake.started == [(None, "mine")]
    assert fake.params == {"depth": 3}
    assert fake.metrics == [(2, FIGURES)]
    assert fake.ended == ["FINISHED"]
    # A resumed training continues the run, and how it ended is known.
    with pytest.raises(KeyboardInterrupt), following([MLflow(name="mine", folder=tmp_path)]):
        raise KeyboardInterrupt
    with pytest.raises(ValueError, match="broken"), following([MLflow(folder=tmp_path)]):
        raise ValueError("broken")
    assert fake.started[1:] == [("first", None), ("first", None)]
    assert fake.ended == ["FINISHED", "KILLED", "FAILED"]


def test_an_active_run_of_mlflow_is_used_and_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeMLflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    fake.active = SimpleNamespace(info=SimpleNamespace(run_id="theirs"))
    with following([MLflow(params={"depth": 3})]) as callback:
        callback.on_epoch_end(RECORD)
    assert (fake.started, fake.ended, len(fake.metrics)) == ([], [], 1)


def test_wandb_gets_parameters_and_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = FakeWandB()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    with following([WandB(params={"depth": 3}, name="mine", folder=tmp_path)]) as callback:
        callback.on_epoch_end(RECORD)
    assert fake.inits == [{"id": None, "name": "mine", "resume": "allow", "dir": str(tmp_path), "depth": 3}]
    assert fake.metrics == [("encoder/*", "encoder/epoch")]
    assert fake.logged == [{**FIGURES, "encoder/epoch": 2}]
    with pytest.raises(ValueError, match="broken"), following([WandB(folder=tmp_path)]):
        raise ValueError("broken")
    assert fake.inits[1]["id"] == "first"
    assert fake.exits == [0, 1]


def test_an_active_run_of_wandb_is_used_and_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeWandB()
    fake.run = fake
    fake.inits.append({})
    monkeypatch.setitem(sys.modules, "wandb", fake)
    with following([WandB(params={"depth": 3})]) as callback:
        callback.on_epoch_end(RECORD)
    assert (len(fake.inits), fake.exits, len(fake.logged)) == (1, [], 1)


def test_missing_packages_name_their_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for package, kind in (("mlflow", MLflow), ("wandb", WandB)):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtraError, match=rf"pip install 'pathdex\[{package}\]'"):
            kind()
    with pytest.raises(ConfigError, match="did you mean 'mlflow'"):
        make_tracker("ml-flow", tmp_path, {})


def test_a_damaged_file_of_ids_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = FakeMLflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    (tmp_path / "tracked.json").write_text('{"mlflow": ')
    with following([make_tracker("mlflow", tmp_path, {})]):
        pass
    assert fake.started == [(None, tmp_path.name)]


def test_tensorboard_writes_scalars(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with following([make_tracker("tensorboard", tmp_path, {})]) as callback:
        assert isinstance(callback.callbacks[0], TensorBoard)  # type: ignore[attr-defined]
        callback.on_epoch_end(RECORD)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(one.step, one.value) for one in events.Scalars("encoder/softmax")] == [(2, 0.5)]


def train(*trackers: Any) -> pathdex.DeepRetrieval:
    rows = [(user, item) for user in range(30) for item in range(user % 5, 20, 3)]
    frame = {"user": [user for user, _ in rows], "item": [item for _, item in rows]}
    model = pathdex.DeepRetrieval(embedding_dim=8, epochs=2, rounds=1, num_nodes=8, depth=2)
    return model.fit(pl.DataFrame(frame), callbacks=list(trackers))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_real_mlflow(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    model = train(MLflow(params={"epochs": 2}, name="tiny", folder=tmp_path))
    with following([MLflow(params={"epochs": 2}, folder=tmp_path)]) as again:
        again.on_epoch_end({"phase": "more", "number": 1, "loss": 1.5})
    [run] = mlflow.MlflowClient().search_runs(["0"])
    assert (run.info.run_name, run.info.status) == ("tiny", "FINISHED")
    assert run.data.params == {"epochs": "2"}
    last = [one for one in model.records if one["phase"] == "encoder"][-1]
    assert run.data.metrics["encoder/softmax"] == pytest.approx(last["softmax"])
    assert run.data.metrics["more/loss"] == 1.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_real_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}.items():
        monkeypatch.setenv(name, value)
    train(WandB(params={"epochs": 2}, name="tiny", folder=tmp_path))
    wandb.teardown()  # Ends the process that writes.
    [written] = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    content = written.read_bytes()
    for words in (b"encoder/softmax", b"structure/structure", b"epochs", b"tiny"):
        assert words in content
