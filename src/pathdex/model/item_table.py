"""The item table: one row of weights per item, trained by rows.

A step touches a few thousand of possibly millions of items. The rows of a batch are gathered into a small dense tensor,
autograd runs on that, and the optimizer updates only these rows.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.kernels.gather import take_rows


class ItemTable:
    """Rows of [input vector | output vector | bias]. With `shared`, input and output are the same vector."""

    def __init__(self, num_items: int, dim: int, *, shared: bool, generator: torch.Generator | None = None) -> None:
        self.dim, self.shared = dim, shared
        width = (dim if shared else 2 * dim) + 1
        self.rows = torch.randn(num_items, width, generator=generator) * dim**-0.5
        self.rows[:, -1] = 0.0

    def inputs(self, rows: Tensor) -> Tensor:
        """Vectors that the encoder reads."""
        return rows[:, : self.dim]

    def outputs(self, rows: Tensor) -> Tensor:
        """Vectors that score items."""
        return rows[:, -self.dim - 1 : -1]

    def take(self, numbers: Tensor) -> Tensor:
        """A copy of some rows."""
        if self.rows.device.type != "cpu":
            return torch.index_select(self.rows, 0, numbers)
        taken: Tensor = torch.empty(len(numbers), self.rows.shape[1])
        take_rows(self.rows.numpy(), numbers.numpy(), taken.numpy())
        return taken

    def all_rows(self) -> Tensor:
        """The rows of all items."""
        rows: Tensor = self.rows.detach()
        return rows

    def find(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """For items, whether `rows` holds them, and their places there."""
        return torch.ones_like(codes, dtype=torch.bool), codes

    def best(self, scores: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """The largest scores and their items, (query, size), for the scores of all items in `rows` (query, item)."""
        found = scores.topk(size, dim=1)
        return found.values, found.indices

    def output_rows(self, rows: Tensor) -> Tensor:
        """[output vector | bias]."""
        return rows if self.shared else rows[:, -self.dim - 1 :]

    def bias(self, rows: Tensor) -> Tensor:
        return rows[:, -1]

    def set_bias(self, bias: NDArray[np.float32]) -> None:
        self.rows[:, -1] = torch.from_numpy(bias).to(self.rows.device)

    def to(self, device: torch.device) -> ItemTable:
        self.rows = self.rows.to(device)
        return self
