"""A gradient step on the node model and the vectors of the nodes it uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.model.adam import Adam
from pathdex.model.lazy_adam import LazyAdam
from pathdex.recommenders.tree.network import TreeNetwork
from pathdex.training.windows import Batch


class NodeSamples(NamedTuple):
    """Training nodes of a level, (sample, node), and whether the user takes an item under them."""

    level: int
    nodes: NDArray[np.int64]
    labels: NDArray[np.float32]
    weights: NDArray[np.float32] | None = None
    """0 for nodes that do not count; None if all count."""
    offsets: NDArray[np.float32] | None = None
    """Added to the logits in the loss only."""


class _Table(NamedTuple):
    """The rows of a level that a step uses.

    One table per level, since autograd allocates the gradient of a whole table even if a part is used.
    """

    rows: Tensor
    vectors: Tensor
    places: list[NDArray[np.int64]]

    @classmethod
    def gather(cls, network: TreeNetwork, level: int, arrays: Sequence[NDArray[np.int64]]) -> _Table:
        used, places = _local(network.tree.first_row(level), network.tree.size(level), arrays)
        rows = torch.from_numpy(used).to(network.device)
        return cls(rows, network.rows[rows].requires_grad_(), places)

    @property
    def gradient(self) -> Tensor:
        assert self.vectors.grad is not None
        return self.vectors.grad


class NodeStep:
    """Binary cross-entropy over nodes of several levels, summed over nodes and levels, averaged over samples."""

    def __init__(self, network: TreeNetwork) -> None:
        settings = network.settings
        self.network = network
        self.rates = settings.learning_rate, settings.node_learning_rate
        self.dense = Adam(network.model.parameters(), settings.learning_rate)
        self.rows = LazyAdam(network.rows, settings.node_learning_rate)

    def __call__(self, batch: Batch, samples: Sequence[NodeSamples], rate: float = 1.0) -> float:
        """Take a step at `rate` times the learning rates; returns the loss."""
        network = self.network
        network.model.train()
        read = sorted({network.reading_level(sample.level) for sample in samples})
        named = {level: [network.history_rows(level, batch.inputs)] for level in read}
        for sample in samples:
            named.setdefault(sample.level, []).append(network.node_rows(sample.level, sample.nodes))
        tables = {level: _Table.gather(network, level, arrays) for level, arrays in named.items()}

        sequence, last = self._tensor(batch.window), self._tensor(batch.time)
        places = {level: iter(table.places) for level, table in tables.items()}
        users = {
            level: network.read(tables[level].vectors, self._tensor(next(places[level])), sequence, last)
            for level in read
        }
        loss = torch.zeros((), device=network.device)
        for sample in samples:
            weights = np.ones_like(sample.labels) if sample.weights is None else sample.weights
            offsets = np.zeros_like(sample.labels) if sample.offsets is None else sample.offsets
            user, codes = users[network.reading_level(sample.level)], next(places[sample.level])
            losses = network.loss(tables[sample.level].vectors, user, codes, sample.labels, weights, offsets)
            loss = loss + losses / len(batch.targets)

        self.dense.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.dense.param_groups[0]["lr"], self.rows.learning_rate = (rate * one for one in self.rates)
        rows, gradients = zip(*((table.rows, table.gradient) for table in tables.values()), strict=True)
        self.rows.step(torch.cat(rows), torch.cat(gradients))
        self.dense.step()
        return float(loss.detach())

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self.network.device)


def _local(
    first: int, size: int, arrays: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """The sorted distinct rows in the arrays, and the arrays as positions among them; -1 stays -1."""
    # One mark per row, and one more for -1.
    places = np.zeros(size + 1, np.int64)
    numbers = [np.where(array < 0, -1, array - first) for array in arrays]
    for array in numbers:
        places[array] = 1
    places[-1] = 0
    used = np.flatnonzero(places)
    places[used] = np.arange(len(used))
    places[-1] = -1
    return used + first, [places[array] for array in numbers]
