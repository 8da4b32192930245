"""The item table and its optimiser on several workers."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.kernels.gather import RowNumbering, add_rows
from pathdex.model.item_table import ItemTable
from pathdex.model.lazy_adam import LazyAdam
from pathdex.training.distributed.group import Group
from pathdex.training.distributed.rows import RowLookup, RowShard, interleave, item_lookup

DRAWN = 4096
"""Rows that are drawn at once. Torch draws normal numbers in blocks of 16, so a multiple gives the same numbers."""


class ShardedItemTable(ItemTable):
    """An item table of which each worker holds a shard of the rows. Its methods are collective.

    The initial rows are those that one process would draw, and as many random numbers are drawn.
    """

    def __init__(self, group: Group, num_items: int, dim: int, *, shared: bool) -> None:
        super().__init__(0, dim, shared=shared)
        self.group, self.shard = group, RowShard(group.rank, group.size, num_items)
        self.rows = torch.empty(self.shard.length, self.rows.shape[1])
        self._draw(num_items)
        self.lookup: RowLookup | None = None
        """That of the last `take`, along which gradients go back."""

    def _draw(self, num_items: int) -> None:
        begin = 0
        while begin < num_items:
            rest = num_items - begin
            number = DRAWN if rest >= 2 * DRAWN else rest  # Torch handles the end of a draw in another way.
            drawn = torch.randn(number, self.rows.shape[1]) * self.dim**-0.5
            first = (self.shard.rank - begin) % self.shard.size
            own = drawn[first :: self.shard.size]
            place = len(range(self.shard.rank, begin, self.shard.size))
            self.rows[place : place + len(own)] = own
            begin += number
        self.rows[:, -1] = 0.0

    def take(self, numbers: Tensor) -> Tensor:
        self.lookup = item_lookup(self.group, numbers.cpu().numpy())
        return self.lookup.fetch(lambda places: ItemTable.take(self, places.to(self.rows.device)))

    def all_rows(self) -> Tensor:
        """The rows of all items, for the full softmax over a small catalogue."""
        self.lookup = None
        whole = interleave(self.group.gather(self.rows.cpu().numpy()), self.shard.total)
        return torch.from_numpy(whole).to(self.rows.device)

    def set_bias(self, bias: NDArray[np.float32]) -> None:
        super().set_bias(bias[self.shard.rank :: self.shard.size].copy())

    def find(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        own = codes % self.shard.size == self.shard.rank
        return own, codes // self.shard.size

    def best(self, scores: Tensor, size: int) -> tuple[Tensor, Tensor]:
        found = scores.topk(min(size, scores.shape[1]), dim=1)
        values, codes = torch.full((len(scores), size), -torch.inf), torch.zeros(len(scores), size, dtype=torch.long)
        values[:, : found.values.shape[1]] = found.values.cpu()
        codes[:, : found.values.shape[1]] = found.indices.cpu() * self.shard.size + self.shard.rank
        each = self.group.stack(values.numpy()), self.group.stack(codes.numpy())
        all_values, all_codes = (torch.from_numpy(np.concatenate(one, axis=1)) for one in each)
        best = all_values.topk(size, dim=1)
        return best.values.to(scores.device), all_codes.gather(1, best.indices).to(scores.device)


class ShardedLazyAdam(LazyAdam):
    """`LazyAdam` for the own rows, with the gradients that all workers have for them."""

    def __init__(self, items: ShardedItemTable, learning_rate: float) -> None:
        super().__init__(items.rows, learning_rate)
        self.items = items
        self.numbering = RowNumbering(items.shard.length)

    def step(self, rows: Tensor | None, gradient: Tensor) -> None:
        """Update the rows that any worker took; `gradient` is that of the rows which this worker took."""
        shard, lookup = self.items.shard, self.items.lookup
        if rows is None:
            whole = self.items.group.sum(gradient)
            super().step(None, whole[shard.rank :: shard.size].contiguous())
            return
        assert lookup is not None
        received = lookup.send_back(gradient).cpu()
        used, (place,) = self.numbering(lookup.wanted.cpu().numpy())
        summed = torch.zeros(len(used), gradient.shape[1])
        add_rows(received.numpy(), place, summed.numpy())
        super().step(torch.from_numpy(used).to(self.table.device), summed.to(self.table.device))
