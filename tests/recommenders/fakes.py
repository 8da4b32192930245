"""A callback that records its calls."""

from typing import Any

from pathdex.training.callbacks import Callback, StepProgress


class RecordedTraining(Callback):
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.steps: list[tuple[str, int, int]] = []
        self.records: list[dict[str, Any]] = []

    def on_train_begin(self) -> None:
        self.calls.append("begin")

    def on_step_end(self, progress: StepProgress) -> None:
        self.steps.append((progress.phase, progress.step, progress.steps))

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        self.records.append(record)

    def on_train_error(self, error: BaseException) -> None:
        self.calls.append(type(error).__name__)

    def on_train_end(self) -> None:
        self.calls.append("end")
