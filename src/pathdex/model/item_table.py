"""The item table: one row of learned numbers per item, trained row by row.

A step touches a few thousand of what may be millions of items. So the rows of a batch are gathered into a small dense
tensor, autograd works on that, and Adam updates just those rows.
"""

from __future__ import annotations

import torch
from torch import Tensor


class ItemTable:
    """Rows of [input vector | output vector | bias]; with `shared`, input and output are one vector."""

    def __init__(self, num_items: int, dim: int, *, shared: bool, generator: torch.Generator | None = None) -> None:
        self.dim, self.shared = dim, shared
        width = (dim if shared else 2 * dim) + 1
        self.rows = torch.randn(num_items, width, generator=generator) * dim**-0.5
        self.rows[:, -1] = 0.0

    def inputs(self, rows: Tensor) -> Tensor:
        """The vectors by which a history is read."""
        return rows[:, : self.dim]

    def outputs(self, rows: Tensor) -> Tensor:
        """The vectors by which items are scored."""
        return rows[:, -self.dim - 1 : -1]

    def bias(self, rows: Tensor) -> Tensor:
        return rows[:, -1]

    def to(self, device: torch.device) -> ItemTable:
        self.rows = self.rows.to(device)
        return self


class LazyAdam:
    """Adam that keeps moments per row and updates only the rows that a step touched."""

    def __init__(self, table: Tensor, learning_rate: float, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.table, self.learning_rate, self.betas = table, learning_rate, betas
        self.first = torch.zeros_like(table)
        self.second = torch.zeros_like(table)
        self.steps = 0

    @torch.no_grad()
    def step(self, rows: Tensor | None, gradient: Tensor) -> None:
        """Update the given distinct rows, or with None the whole table, by their gradient."""
        beta1, beta2 = self.betas
        self.steps += 1
        index = slice(None) if rows is None else rows
        first = self.first[index].mul_(beta1).add_(gradient, alpha=1 - beta1)
        second = self.second[index].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        scale = self.learning_rate * (1 - beta2**self.steps) ** 0.5 / (1 - beta1**self.steps)
        change = first.div(second.sqrt().add_(1e-8)).mul_(-scale)
        if rows is None:
            self.table += change
            return
        self.first[rows] = first
        self.second[rows] = second
        self.table.index_add_(0, rows, change)
