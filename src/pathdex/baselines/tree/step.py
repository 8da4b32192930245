"""A gradient step on the node model and on the vectors of the nodes that it meets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.baselines.tree.network import TreeNetwork
from pathdex.baselines.tree.row_step import step_rows
from pathdex.model.items import RowAdam
from pathdex.training.windows import Batch


class Lesson(NamedTuple):
    """What a level is to learn from each sample: nodes (sample, node) and whether the user takes what is under them."""

    level: int
    nodes: NDArray[np.int64]
    labels: NDArray[np.float32]
    weights: NDArray[np.float32] | None = None
    """0 for nodes that do not count."""


class NodeStep:
    """Binary cross-entropy over the nodes of a few levels, summed over nodes and levels, averaged over samples."""

    def __init__(self, network: TreeNetwork) -> None:
        settings = network.settings
        self.network = network
        self.rates = settings.learning_rate, settings.node_learning_rate
        self.dense = torch.optim.Adam(network.model.parameters(), settings.learning_rate)
        self.rows = RowAdam(network.rows, settings.node_learning_rate)

    def __call__(self, batch: Batch, lessons: Sequence[Lesson], rate: float = 1.0) -> float:
        """Take the step at `rate` times the learning rates. Returns the loss."""
        network = self.network
        network.model.train()
        levels = [lesson.level for lesson in lessons] if network.settings.hierarchical else [network.tree.depth]
        histories = [network.history_rows(level, batch.inputs) for level in levels]
        nodes = [network.node_rows(lesson.level, lesson.nodes) for lesson in lessons]
        used, local = _local(network.tree.num_rows, [*histories, *nodes])
        rows = self._tensor(used)
        table = network.rows[rows].requires_grad_()

        read, met = local[: len(histories)], local[len(histories) :]
        sequence, last = self._tensor(batch.window), self._tensor(batch.time)
        users = [network.read(table, self._tensor(codes), sequence, last) for codes in read]
        loss = torch.zeros((), device=network.device)
        for number, (lesson, codes) in enumerate(zip(lessons, met, strict=True)):
            weights = np.ones_like(lesson.labels) if lesson.weights is None else lesson.weights
            # Rows are sorted by level, so a lesson's are side by side.
            low, high = codes.min(), codes.max()
            user, part = users[number % len(users)], table[low : high + 1]
            losses = network.loss(part, user, codes - low, lesson.labels, weights)
            loss = loss + losses / len(batch.targets)

        self.dense.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.dense.param_groups[0]["lr"], self.rows.learning_rate = (rate * one for one in self.rates)
        assert table.grad is not None
        step_rows(self.rows, rows, table.grad)
        self.dense.step()
        return float(loss.detach())

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self.network.device)


def _local(num_rows: int, arrays: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """The distinct rows that the arrays name, sorted, and the arrays as places among them; -1 stays."""
    # A stamp for each row and one more, which -1 hits.
    places = np.zeros(num_rows + 1, np.int64)
    for array in arrays:
        places[array] = 1
    places[-1] = 0
    used = np.flatnonzero(places)
    places[used] = np.arange(len(used))
    places[-1] = -1
    return used, [places[array] for array in arrays]
