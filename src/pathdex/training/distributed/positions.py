"""User vectors on several workers: each has those of consecutive users, about equally many interactions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.kernels.gather import RowNumbering
from pathdex.model.network import Network
from pathdex.training.distributed.group import Group
from pathdex.training.distributed.rows import RowLookup
from pathdex.training.e_step import encode_batch
from pathdex.training.windows import Batch, cut_windows, sequential_batches


class PositionShard(NamedTuple):
    """Positions in `sequences.values`: worker r has `starts[r]` to `starts[r + 1]`, which are whole sequences."""

    rank: int
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, sequences: Ragged, rank: int, size: int) -> PositionShard:
        even = len(sequences.values) * np.arange(size + 1) // size
        rows = np.searchsorted(sequences.offsets, even)
        return cls(rank, np.asarray(sequences.offsets)[rows].astype(np.int64))

    @property
    def first(self) -> int:
        return int(self.starts[self.rank])

    @property
    def end(self) -> int:
        return int(self.starts[self.rank + 1])

    def owns(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        own: NDArray[np.bool_] = (positions >= self.first) & (positions < self.end)
        return own


class ShardedPositionVectors:
    """The user vectors before the interactions of own users: (own position, dim)."""

    def __init__(self, group: Group, shard: PositionShard, own: NDArray[np.float32]) -> None:
        self.group, self.shard, self.own = group, shard, own

    def at(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors at any positions, from the workers that have them; collective."""
        starts = self.shard.starts
        owners = np.searchsorted(starts[1:-1], positions, side="right")
        lookup = RowLookup(self.group, owners, positions - starts[owners])
        found: NDArray[np.float32] = lookup.fetch(lambda places: torch.from_numpy(self.own)[places]).numpy()
        return found


def sharded_position_vectors(
    network: Network, data: Interactions, batch_size: int, group: Group, shard: PositionShard
) -> ShardedPositionVectors:
    """`position_vectors` of own users; collective, since item rows come from all workers."""
    network.eval()
    windows = cut_windows(data.sequences, network.history_length, np.random.default_rng(0))
    windows = windows.take(np.flatnonzero(shard.owns(windows.first)))
    vectors = np.empty((shard.end - shard.first, len(network.start)), np.float32)
    numbering = RowNumbering(network.num_items)
    batches = sequential_batches(windows, batch_size)
    rounds = group.largest(num_batches(windows.end - windows.first, batch_size))
    for _ in range(rounds):
        batch: Batch | None = next(batches, None)
        if batch is None:  # Others still need rows.
            network.items.take(_nothing())
        else:
            vectors[batch.position - shard.first] = encode_batch(network, batch, numbering)
    return ShardedPositionVectors(group, shard, vectors)


def num_batches(targets: NDArray[np.int64], size: int) -> int:
    """An upper bound for the number of batches."""
    return int(targets.sum()) // size + 1


def _nothing() -> Tensor:
    return torch.empty(0, dtype=torch.long)
