"""Adam for tables of which a step touches few rows."""

from __future__ import annotations

import torch
from torch import Tensor


class LazyAdam:
    """Adam with moments per row that updates only the touched rows."""

    def __init__(self, table: Tensor, learning_rate: float, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.table, self.learning_rate, self.betas = table, learning_rate, betas
        self.first = torch.zeros_like(table)
        self.second = torch.zeros_like(table)
        self.steps = 0

    @torch.no_grad()
    def step(self, rows: Tensor | None, gradient: Tensor) -> None:
        """Update distinct rows, or the whole table if `rows` is None."""
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
