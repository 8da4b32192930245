"""Adam for a table of which a step touches only a few rows."""

from __future__ import annotations

import torch
from torch import Tensor

from pathdex.kernels.adam import update_rows


class LazyAdam:
    """Adam that keeps moments per row and updates only the rows that a step touched.

    Rows on the CPU are updated in one compiled pass; results agree with the torch version up to rounding.
    """

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
        scale = self.learning_rate * (1 - beta2**self.steps) ** 0.5 / (1 - beta1**self.steps)
        if rows is not None and self.table.device.type == "cpu":
            update_rows(
                self.table.numpy(),
                self.first.numpy(),
                self.second.numpy(),
                gradient.contiguous().numpy(),
                rows.numpy(),
                beta1,
                beta2,
                scale,
            )
            return
        index = slice(None) if rows is None else rows
        first = self.first[index].mul_(beta1).add_(gradient, alpha=1 - beta1)
        second = self.second[index].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        change = first.div(second.sqrt().add_(1e-8)).mul_(-scale)
        if rows is None:
            self.table += change
            return
        self.first[rows] = first
        self.second[rows] = second
        self.table.index_add_(0, rows, change)
