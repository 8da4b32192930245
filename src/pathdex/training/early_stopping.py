"""Early stopping: keep the weights of the epoch with the best figure on held-out queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.model.network import Network
from pathdex.training.loop import TrainingState

PATIENCE = 3
"""Training stops after so many epochs without a better figure."""
PREFIX = "best."


class BestWeights:
    """The weights of a network at its best epoch so far."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.figure, self.epoch = -np.inf, -1
        self._weights: dict[str, NDArray[np.float32]] = {}

    def update(self, figure: float, epoch: int) -> None:
        """Keep the network's weights if the figure is the best so far."""
        if figure > self.figure:
            self.figure, self.epoch = figure, epoch
            self._weights = {name: value.copy() for name, value in self.network.export().items()}

    def stops(self, epoch: int) -> bool:
        """Whether training stops before an epoch."""
        return self.epoch >= 0 and epoch - self.epoch > PATIENCE

    def restore(self) -> None:
        """Give the network the weights of its best epoch, if there is one."""
        if self._weights:
            self.network.restore(self._weights)

    def state_dict(self) -> TrainingState:
        values = {"best": {"figure": self.figure, "epoch": self.epoch}} if self._weights else {}
        return TrainingState(values, {f"{PREFIX}{name}": value for name, value in self._weights.items()})

    def load_state_dict(self, state: TrainingState) -> None:
        best: dict[str, Any] | None = state.values.get("best")
        if best is not None:
            self.figure, self.epoch = best["figure"], best["epoch"]
            self._weights = {
                name.removeprefix(PREFIX): array for name, array in state.arrays.items() if name.startswith(PREFIX)
            }
