"""Rows of size V on several workers: worker r of N owns the rows of the items r, r + N, r + 2N ...

Codes of popular items often lie side by side, so that consecutive ranges would load one worker with most lookups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.training.distributed.group import Group


class RowShard(NamedTuple):
    """The rows of one worker out of `total`. Row i of the shard is row `rank + i size` of the whole."""

    rank: int
    size: int
    total: int

    @property
    def length(self) -> int:
        """The number of own rows."""
        return len(range(self.rank, self.total, self.size))

    @property
    def codes(self) -> NDArray[np.int64]:
        """The own rows, ascending."""
        return np.arange(self.rank, self.total, self.size)

    def owns(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        own: NDArray[np.bool_] = codes % self.size == self.rank
        return own


class RowLookup:
    """Distinct rows that this worker needs from their owners, and the way back for their gradients."""

    def __init__(self, group: Group, owners: NDArray[np.integer], places: NDArray[np.int64]) -> None:
        """`places` (row,) are the rows' places at their `owners` (row,)."""
        self.group, self.order = group, torch.from_numpy(np.argsort(owners, kind="stable"))
        self.counts: list[int] = np.bincount(owners, minlength=group.size).tolist()
        wanted, self.sizes = group.exchange(torch.from_numpy(places)[self.order], self.counts)
        self.wanted = wanted
        """The own rows that others, and this worker, asked for."""

    def fetch(self, rows_at: Callable[[Tensor], Tensor]) -> Tensor:
        """The rows, in the order in which they were asked for. `rows_at` reads own rows at some places."""
        replies, _ = self.group.exchange(rows_at(self.wanted), self.sizes, self.counts)
        found = torch.empty_like(replies)
        found[self.order.to(found.device)] = replies
        return found

    def send_back(self, values: Tensor) -> Tensor:
        """Send a value per asked row to its owner; returns those of the rows `wanted`."""
        received, _ = self.group.exchange(values[self.order.to(values.device)], self.counts, self.sizes)
        return received


def item_lookup(group: Group, codes: NDArray[np.int64]) -> RowLookup:
    """A lookup of rows that are sharded by item."""
    return RowLookup(group, codes % group.size, codes // group.size)


def gather_items(group: Group, own: NDArray[Any], total: int) -> NDArray[Any] | None:
    """The whole of a sharded array (item, ...), on the first worker."""
    parts = group.gather_first(own)
    return None if parts is None else interleave(parts, total)


def interleave(parts: list[NDArray[Any]], total: int) -> NDArray[Any]:
    """The whole (item, ...) of the shards of all workers."""
    whole = np.empty((total, *parts[0].shape[1:]), parts[0].dtype)
    for rank, part in enumerate(parts):
        whole[rank :: len(parts)] = part
    return whole
