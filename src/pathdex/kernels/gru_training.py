"""A GRU over a batch of windows, forward and backward, step by step in one compiled call.

Arrays are time-major, so that the rows of a time step are contiguous. T times, B windows, H units; gates are r, z, n in
this order, as in torch. Windows are independent, so ranges of them can be computed in any order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pathdex.kernels.exp import fast_exp
from pathdex.kernels.gemm import gemm_accumulate
from pathdex.kernels.types import Floats

_ONE, _TWO = np.float32(1.0), np.float32(2.0)


@njit(cache=True, nogil=True)
def gru_forward(
    gates: Floats, weight: Floats, bias: Floats, states: Floats, candidate: Floats, first: int, last: int
) -> None:
    """Run windows `first` to `last`.

    `gates` (T, B, 3, H) holds the input's products and becomes r, z, n. `weight` (H, 3H) and `bias` are those of the
    state. `states` (T + 1, B, H) starts with the state before the first step. `candidate` (T, B, H) receives the
    state's part of n, which the backward pass needs.
    """
    count, hidden = last - first, states.shape[2]
    products = np.empty((count, 3 * hidden), np.float32)
    by_gate = products.reshape(count, 3, hidden)
    for time in range(len(gates)):
        before = states[time, first:last]
        for row in range(count):
            for k in range(len(bias)):
                products[row, k] = bias[k]
        gemm_accumulate(before, count, weight, products)
        _gates_forward(
            gates[time, first:last], by_gate, before, states[time + 1, first:last], candidate[time, first:last]
        )


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def _gates_forward(gates: Floats, products: Floats, before: Floats, after: Floats, candidate: Floats) -> None:
    """One step; gates and products (row, gate, hidden), since LLVM vectorises only loops over a whole last axis."""
    for row in range(len(before)):
        for gate in range(2):
            for k in range(before.shape[1]):
                gates[row, gate, k] = _ONE / (_ONE + fast_exp(-gates[row, gate, k] - products[row, gate, k]))
        for k in range(before.shape[1]):
            part = products[row, 2, k]
            total = gates[row, 2, k] + gates[row, 0, k] * part
            new = _ONE - _TWO / (_ONE + fast_exp(_TWO * total))  # tanh
            candidate[row, k] = part
            gates[row, 2, k] = new
            after[row, k] = new + gates[row, 1, k] * (before[row, k] - new)


@njit(cache=True, nogil=True)
def gru_backward(
    gates: Floats, weight: Floats, states: Floats, candidate: Floats, gradient: Floats, first: int, last: int
) -> None:
    """The gradient of windows `first` to `last`, from `gradient` (T, B, H) with respect to the states after each step.

    `gates` becomes the gradient with respect to the input's products and `candidate` that with respect to the state's
    part of n; for r and z these are the same. `weight` (3H, H) is the transpose of that of `gru_forward`.
    """
    count, hidden = last - first, states.shape[2]
    products, carried = np.empty((count, 3 * hidden), np.float32), np.zeros((count, hidden), np.float32)
    by_gate = products.reshape(count, 3, hidden)
    for time in range(len(gates) - 1, -1, -1):
        _gates_backward(
            gates[time, first:last],
            by_gate,
            states[time, first:last],
            candidate[time, first:last],
            gradient[time, first:last],
            carried,
        )
        gemm_accumulate(products, count, weight, carried)


@njit(cache=True, nogil=True, fastmath=True)
def _gates_backward(
    gates: Floats, products: Floats, before: Floats, candidate: Floats, gradient: Floats, carried: Floats
) -> None:
    for row in range(len(before)):
        for k in range(before.shape[1]):
            r, z, n = gates[row, 0, k], gates[row, 1, k], gates[row, 2, k]
            total = gradient[row, k] + carried[row, k]
            new = total * (_ONE - z) * (_ONE - n * n)
            reset, update = new * candidate[row, k] * r * (_ONE - r), total * (before[row, k] - n) * z * (_ONE - z)
            carried[row, k] = total * z
            gates[row, 0, k] = products[row, 0, k] = reset
            gates[row, 1, k] = products[row, 1, k] = update
            gates[row, 2, k] = new
            candidate[row, k] = products[row, 2, k] = new * r


@njit(cache=True, nogil=True, fastmath=True)
def running_mean(values: Floats, means: Floats) -> None:
    """means[t] = mean of values[0] to values[t], (time, batch, dim)."""
    _, batch, dim = values.shape
    total = np.zeros((batch, dim), np.float32)
    for time in range(len(values)):
        scale = _ONE / np.float32(time + 1)
        for row in range(total.shape[0]):
            for k in range(total.shape[1]):
                total[row, k] += values[time, row, k]
                means[time, row, k] = total[row, k] * scale


@njit(cache=True, nogil=True, fastmath=True)
def running_mean_backward(gradient: Floats, result: Floats) -> None:
    """Add to `result` the gradient with respect to the values of `running_mean`."""
    total = np.zeros_like(gradient[0])
    for time in range(len(gradient) - 1, -1, -1):
        scale = _ONE / np.float32(time + 1)
        for row in range(total.shape[0]):
            for k in range(total.shape[1]):
                total[row, k] += gradient[time, row, k] * scale
                result[time, row, k] += total[row, k]
