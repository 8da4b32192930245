"""`LazyAdam.step` as one compiled pass: a step on a large tree touches tens of thousands of rows."""

# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from pathdex.kernels.types import Floats
from pathdex.model.lazy_adam import LazyAdam


def step_rows(adam: LazyAdam, rows: Tensor, gradient: Tensor) -> None:
    """Update the given distinct rows by their gradient, as `adam.step` does."""
    if adam.table.device.type != "cpu":
        adam.step(rows, gradient)
        return
    beta1, beta2 = adam.betas
    adam.steps += 1
    scale = adam.learning_rate * (1 - beta2**adam.steps) ** 0.5 / (1 - beta1**adam.steps)
    table, first, second = adam.table.numpy(), adam.first.numpy(), adam.second.numpy()
    _update(table, first, second, gradient.contiguous().numpy(), rows.numpy(), beta1, beta2, scale)


@njit(cache=True, nogil=True, fastmath=True)
def _update(
    table: Floats,
    first: Floats,
    second: Floats,
    gradient: Floats,
    rows: NDArray[np.int64],
    beta1: float,
    beta2: float,
    scale: float,
) -> None:
    keep_first, take_first = np.float32(beta1), np.float32(1 - beta1)
    keep_second, take_second = np.float32(beta2), np.float32(1 - beta2)
    rate, tiny = np.float32(scale), np.float32(1e-8)
    for number in range(len(rows)):
        row = rows[number]
        for k in range(table.shape[1]):
            first[row, k] = keep_first * first[row, k] + take_first * gradient[number, k]
        for k in range(table.shape[1]):
            second[row, k] = keep_second * second[row, k] + take_second * gradient[number, k] * gradient[number, k]
        for k in range(table.shape[1]):
            table[row, k] -= rate * first[row, k] / (np.sqrt(second[row, k]) + tiny)
