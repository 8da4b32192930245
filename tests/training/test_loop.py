"""The training loop: order of calls, records, and resuming after any step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathdex.errors import RunError
from pathdex.training import checkpointing
from pathdex.training.callbacks import Callback, StepProgress
from pathdex.training.checkpointing import Checkpointer
from pathdex.training.loop import Phase, TrainingLoop, TrainingState
from tests.recommender_contract import StopAfter


class Adding(Phase):
    """Adds the number of each step to a total: any step that is lost or repeated shows."""

    def __init__(self, name: str, epochs: int, steps: int, log: list[str]) -> None:
        self.name, self.epochs, self.steps, self.log = name, epochs, steps, log
        self.total = np.zeros(1)

    def begin(self) -> None:
        self.log.append(f"{self.name} begin")

    def begin_epoch(self, epoch: int) -> int:
        self.log.append(f"{self.name} epoch {epoch}")
        return self.steps

    def step(self, epoch: int, step: int) -> Mapping[str, float]:
        self.total += 10 * epoch + step
        return {"loss": float(step)}

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        return {"total": float(self.total[0])}

    def state_dict(self) -> TrainingState:
        return TrainingState({}, {f"{self.name}.total": self.total})

    def load_state_dict(self, state: TrainingState) -> None:
        self.total = state.arrays[f"{self.name}.total"].copy()


def make(
    checkpoint: Path | None = None, callbacks: tuple[Callback, ...] = (), **identity: Any
) -> tuple[TrainingLoop, list[str]]:
    log: list[str] = []
    phases = [Adding("first", 2, 3, log), Adding("second", 1, 2, log)]
    return TrainingLoop(phases, callbacks, None if checkpoint is None else Checkpointer(checkpoint, identity)), log


class Steps(Callback):
    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int, float]] = []

    def on_step_end(self, progress: StepProgress) -> None:
        self.seen.append((progress.phase, progress.epoch, progress.step, progress.losses["loss"]))


def test_phases_epochs_and_steps_run_in_order() -> None:
    steps = Steps()
    loop, log = make(callbacks=(steps,))
    loop.run()
    assert log == ["first begin", "first epoch 0", "first epoch 1", "second begin", "second epoch 0"]
    # Losses are means over the epoch so far.
    assert steps.seen == [
        *(("first", epoch, step, (step - 1) / 2) for epoch in (1, 2) for step in (1, 2, 3)),
        *(("second", 1, step, (step - 1) / 2) for step in (1, 2)),
    ]
    figures = [(record["phase"], record["number"], record["loss"], record["total"]) for record in loop.records]
    assert figures == [("first", 1, 1.0, 3.0), ("first", 2, 1.0, 36.0), ("second", 1, 0.5, 1.0)]


@pytest.mark.parametrize("steps", range(1, 9))
@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_a_loop_stopped_after_any_step_resumes_to_the_same_result(
    steps: int, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a checkpoint after every step, and with one per epoch."""
    monkeypatch.setattr(checkpointing, "CHECKPOINT_SECONDS", seconds)
    whole, _ = make()
    whole.run()
    stopped, _ = make(tmp_path / "state", (StopAfter(steps),))
    with pytest.raises(KeyboardInterrupt):
        stopped.run()
    resumed, log = make(tmp_path / "state")
    if (tmp_path / "state").exists():
        resumed.resume()
    else:
        assert steps <= 3
    resumed.run()
    assert [phase.total[0] for phase in resumed.phases] == [36.0, 1.0]  # type: ignore[attr-defined]
    for name in ("phase", "number", "loss", "total"):
        assert [record[name] for record in resumed.records] == [record[name] for record in whole.records]
    assert log.count("second begin") <= 1


def test_a_finished_training_resumes_to_itself(tmp_path: Path) -> None:
    first, _ = make(tmp_path / "state")
    first.run()
    again, log = make(tmp_path / "state")
    again.resume()
    again.run()
    assert log == []
    assert again.records == first.records


def test_a_later_phase_can_be_the_first() -> None:
    loop, log = make()
    loop.skip_to(loop.phases[1])
    loop.run()
    assert log == ["second begin", "second epoch 0"]


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "state", seed=1)[0].run()
    with pytest.raises(RunError, match="was written with a different seed; resume with the same"):
        make(tmp_path / "state", seed=2)[0].resume()


def test_steps_know_the_share_of_the_whole_training() -> None:
    class Shares(Callback):
        def __init__(self) -> None:
            self.seen: list[float] = []

        def on_step_end(self, progress: StepProgress) -> None:
            self.seen.append(progress.share)

    shares = Shares()
    loop, _ = make(callbacks=(shares,))
    loop.phases[0].epoch_cost = 2.0
    loop.run()
    # Two epochs of cost 2 with three steps each, then one of cost 1 with two steps.
    assert shares.seen == pytest.approx([2 / 15, 4 / 15, 0.4, 8 / 15, 10 / 15, 0.8, 0.9, 1.0])


def test_finished_epochs_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="pathdex"):
        make()[0].run()
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split("  ")[0] for line in lines] == ["first 1", "first 2", "second 1"]
    assert {record.name for record in caplog.records} == {"pathdex.training.loop"}
