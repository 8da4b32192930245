"""The user encoders of `pathdex.model.encoders`, one history at a time.

A compiled encoder reads a history item by item into a state (row, dim) and computes the user vector from it, so a state
can be kept and continued with the next item. To add an encoder, write a class and enter it in `ENCODERS`; an encoder
without an entry runs in torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.kernels.attention import Attention
from pathdex.kernels.exp import sigmoid
from pathdex.kernels.gemm import gemm_accumulate, gemv_accumulate
from pathdex.kernels.layout import as_matrix, as_readonly
from pathdex.kernels.prefetch import prefetch_row
from pathdex.kernels.types import Floats, Ints

Weights = Mapping[str, NDArray[Any]]


class Encoder(Protocol):
    """Reads items into a state and computes user vectors from it."""

    @classmethod
    def pack(cls, weights: Weights) -> Self:
        """Pack weights by their names in the model, without the prefix `encoder.`."""

    def state_rows(self, capacity: int) -> int:
        """The number of rows of a state that reads at most `capacity` inputs."""

    def advance(self, state: Floats, count: int, inputs: Floats) -> None:
        """Update a state that has read `count` inputs with further ones (time, dim)."""

    def read(self, state: Floats, count: int) -> Floats:
        """The user vector after `count` inputs."""


def _packed(weights: Weights, *names: str) -> list[NDArray[Any]]:
    return [as_readonly(weights[name]) if "bias" in name else as_matrix(weights[name]) for name in names]


class GRU(NamedTuple):
    """State: the GRU's hidden vector, the sum of the inputs, the last input."""

    inputs: Floats
    """(dim, gate x dim), gates r, z, n."""
    input_bias: Floats
    hidden: Floats
    hidden_bias: Floats
    project: Floats
    project_bias: Floats
    last: Floats
    mean: Floats

    @classmethod
    def pack(cls, weights: Weights) -> GRU:
        gates = [f"recurrent.{name}_l0" for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")]
        return cls(*_packed(weights, *gates, "project.weight", "project.bias", "last.weight", "mean.weight"))

    def state_rows(self, capacity: int) -> int:
        return 3

    def advance(self, state: Floats, count: int, inputs: Floats) -> None:
        _advance_gru(self, state, inputs)

    def read(self, state: Floats, count: int) -> Floats:
        return _read_gru(self, state, count)


class Pooled(NamedTuple):
    """State: the sum of the inputs, the last input."""

    first: Floats
    first_bias: Floats
    second: Floats
    second_bias: Floats
    last: Floats
    mean: Floats

    @classmethod
    def pack(cls, weights: Weights) -> Pooled:
        names = "network.0.weight", "network.0.bias", "network.2.weight", "network.2.bias", "last.weight", "mean.weight"
        return cls(*_packed(weights, *names))

    def state_rows(self, capacity: int) -> int:
        return 2

    def advance(self, state: Floats, count: int, inputs: Floats) -> None:
        state[0] += inputs.sum(axis=0)
        state[1] = inputs[-1]

    def read(self, state: Floats, count: int) -> Floats:
        return _read_pooled(self, state, count)


ENCODERS: dict[str, type[GRU | Pooled | Attention]] = {"gru": GRU, "pooled": Pooled, "attention": Attention}


@njit(cache=True, nogil=True)
def input_vectors(table: Floats, start: Floats, codes: Ints) -> Floats:
    """The input vectors (time, dim) of items; code -1 is the start of a history."""
    dim = len(start)
    inputs = np.empty((len(codes), dim), np.float32)
    for code in codes:
        if code >= 0:
            prefetch_row(table, code)
    for t in range(len(codes)):
        if codes[t] < 0:
            inputs[t] = start
        else:
            for k in range(dim):
                inputs[t, k] = table[codes[t], k]
    return inputs


@njit(cache=True, nogil=True, fastmath=True)
def _advance_gru(weights: GRU, state: Floats, inputs: Floats) -> None:
    dim = state.shape[1]
    hidden, total = state[0], state[1]
    from_inputs, from_hidden = np.empty((len(inputs), 3 * dim), np.float32), np.empty((1, 3 * dim), np.float32)
    from_inputs[:] = weights.input_bias
    gemm_accumulate(inputs, len(inputs), weights.inputs, from_inputs)
    new = np.empty(dim, np.float32)
    # Views that begin at 0: an index that might be negative keeps LLVM from vectorising a loop.
    hidden_gates, hidden_new, bias = from_hidden[0, : 2 * dim], from_hidden[0, 2 * dim :], weights.hidden_bias
    for t in range(len(inputs)):
        gates, update, input_new = from_inputs[t, : 2 * dim], from_inputs[t, dim : 2 * dim], from_inputs[t, 2 * dim :]
        for k in range(len(bias)):
            from_hidden[0, k] = bias[k]
        gemm_accumulate(state, 1, weights.hidden, from_hidden)
        for k in range(len(gates)):
            gates[k] += hidden_gates[k]
        sigmoid(gates)  # r and z
        for k in range(len(new)):
            # tanh(x) = 2 sigmoid(2 x) - 1
            new[k] = np.float32(2.0) * (input_new[k] + gates[k] * hidden_new[k])
        sigmoid(new)
        for k in range(len(new)):
            value = np.float32(2.0) * new[k] - np.float32(1.0)
            hidden[k] = value + update[k] * (hidden[k] - value)
            total[k] += inputs[t, k]
    state[2] = inputs[len(inputs) - 1]


@njit(cache=True, nogil=True, fastmath=True)
def _read_gru(weights: GRU, state: Floats, count: int) -> Floats:
    user = weights.project_bias.copy()
    gemv_accumulate(state[0], weights.project, user)
    gemv_accumulate(state[2], weights.last, user)
    gemv_accumulate(state[1] / np.float32(count), weights.mean, user)
    return user


@njit(cache=True, nogil=True, fastmath=True)
def _read_pooled(weights: Pooled, state: Floats, count: int) -> Floats:
    dim = state.shape[1]
    both = np.empty(2 * dim, np.float32)
    both[:dim] = state[0] / np.float32(count)
    both[dim:] = state[1]
    hidden = weights.first_bias.copy()
    gemv_accumulate(both, weights.first, hidden)
    user = weights.second_bias.copy()
    gemv_accumulate(np.maximum(hidden, np.float32(0.0)), weights.second, user)
    gemv_accumulate(both[dim:], weights.last, user)
    gemv_accumulate(both[:dim], weights.mean, user)
    return user
