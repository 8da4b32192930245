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
        read = sorted({network.reading_level(lesson.level) for lesson in lessons})
        met = [network.node_rows(lesson.level, lesson.nodes) for lesson in lessons]
        histories = [network.history_rows(level, batch.inputs) for level in read]
        # A table for each level, since autograd handles a part of a table as slowly as the whole.
        tables: dict[int, Tensor] = {}
        rows: dict[int, Tensor] = {}
        places: dict[int, list[NDArray[np.int64]]] = {}
        for level in sorted({*read, *(lesson.level for lesson in lessons)}):
            here = [array for at, array in zip(read, histories, strict=True) if at == level]
            here += [array for lesson, array in zip(lessons, met, strict=True) if lesson.level == level]
            used, places[level] = _local(network.tree.first_row(level), network.tree.size(level), here)
            rows[level] = self._tensor(used)
            tables[level] = network.rows[rows[level]].requires_grad_()

        sequence, last = self._tensor(batch.window), self._tensor(batch.time)
        users = {
            level: network.read(tables[level], self._tensor(places[level].pop(0)), sequence, last) for level in read
        }
        loss = torch.zeros((), device=network.device)
        for lesson in lessons:
            weights = np.ones_like(lesson.labels) if lesson.weights is None else lesson.weights
            user, codes = users[network.reading_level(lesson.level)], places[lesson.level].pop(0)
            losses = network.loss(tables[lesson.level], user, codes, lesson.labels, weights)
            loss = loss + losses / len(batch.targets)

        self.dense.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.dense.param_groups[0]["lr"], self.rows.learning_rate = (rate * one for one in self.rates)
        gradients = [table.grad for table in tables.values() if table.grad is not None]
        step_rows(self.rows, torch.cat(list(rows.values())), torch.cat(gradients))
        self.dense.step()
        return float(loss.detach())

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self.network.device)


def _local(
    first: int, size: int, arrays: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """The distinct rows from `first` on that the arrays name, sorted, and the arrays as places among them; -1 stays."""
    # A stamp for each row and one more, which -1 hits.
    places = np.zeros(size + 1, np.int64)
    numbers = [np.where(array < 0, -1, array - first) for array in arrays]
    for array in numbers:
        places[array] = 1
    places[-1] = 0
    used = np.flatnonzero(places)
    places[used] = np.arange(len(used))
    places[-1] = -1
    return used + first, [places[array] for array in numbers]
