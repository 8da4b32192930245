"""A listener that keeps what it hears."""

from typing import Any


class Notes:
    def __init__(self) -> None:
        self.steps: list[tuple[str, int, int]] = []
        self.records: list[dict[str, Any]] = []

    def on_step_end(self, phase: str, number: int, of: int, done: int, total: int, losses: dict[str, float]) -> None:
        self.steps.append((phase, done, total))

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        self.records.append(record)
