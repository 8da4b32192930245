"""The user encoders of `pathdex.model.encoders`, one history at a time.

A compiled encoder reads a history item by item into a state, rows of `dim` numbers, and makes the user vector from the
state. So a state can be kept and go on with the next item. A new one is a class here and an entry in `ENCODERS`; an
encoder of the model without an entry is run by torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.kernels.arithmetic import Floats, add_product, sigmoid
from pathdex.kernels.attention import AttentionWeights, advance_attention, read_attention
from pathdex.kernels.gemm import add_products
from pathdex.kernels.layout import frozen, linear
from pathdex.kernels.prefetch import prefetch_row

Weights = Mapping[str, NDArray[Any]]


class Encoder(Protocol):
    """Reads items into a state and makes user vectors of it."""

    @classmethod
    def pack(cls, weights: Weights) -> Self:
        """From the encoder's weights by their names in the model, without the prefix `encoder.`."""

    def state_rows(self, capacity: int) -> int:
        """How many rows a state needs that reads at most `capacity` inputs."""

    def advance(self, state: Floats, count: int, inputs: Floats) -> None:
        """Let a state that has read `count` inputs read further ones (time, dim)."""

    def read(self, state: Floats, count: int) -> Floats:
        """The user vector after `count` inputs."""


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
        return cls(
            linear(weights["recurrent.weight_ih_l0"]),
            frozen(weights["recurrent.bias_ih_l0"]),
            linear(weights["recurrent.weight_hh_l0"]),
            frozen(weights["recurrent.bias_hh_l0"]),
            linear(weights["project.weight"]),
            frozen(weights["project.bias"]),
            linear(weights["last.weight"]),
            linear(weights["mean.weight"]),
        )

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
        return cls(
            linear(weights["network.0.weight"]),
            frozen(weights["network.0.bias"]),
            linear(weights["network.2.weight"]),
            frozen(weights["network.2.bias"]),
            linear(weights["last.weight"]),
            linear(weights["mean.weight"]),
        )

    def state_rows(self, capacity: int) -> int:
        return 2

    def advance(self, state: Floats, count: int, inputs: Floats) -> None:
        state[0] += inputs.sum(axis=0)
        state[1] = inputs[-1]

    def read(self, state: Floats, count: int) -> Floats:
        return _read_pooled(self, state, count)


class Attention(NamedTuple):
    """State: see `attention`."""

    weights: AttentionWeights

    @classmethod
    def pack(cls, weights: Weights) -> Attention:
        return cls(AttentionWeights.pack(weights))

    def state_rows(self, capacity: int) -> int:
        return 3 + 2 * capacity * len(self.weights.merge)

    def advance(self, state: Floats, count: int, inputs: Floats) -> None:
        advance_attention(self.weights, state, count, inputs)

    def read(self, state: Floats, count: int) -> Floats:
        return read_attention(self.weights, state, count)


ENCODERS: dict[str, type[GRU | Pooled | Attention]] = {"gru": GRU, "pooled": Pooled, "attention": Attention}


@njit(cache=True, nogil=True)
def input_vectors(table: Floats, start: Floats, codes: NDArray[np.int64]) -> Floats:
    """The vectors (time, dim) by which items are read; code -1 is the start of a history."""
    dim = len(start)
    inputs = np.empty((len(codes), dim), np.float32)
    for code in codes:
        if code >= 0:
            prefetch_row(table, code)  # type: ignore[call-arg]
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
    every, back = np.empty((len(inputs), 3 * dim), np.float32), np.empty((1, 3 * dim), np.float32)
    every[:] = weights.input_bias
    add_products(inputs, len(inputs), weights.inputs, every)
    new, bits = np.empty(dim, np.float32), np.empty(2 * dim, np.int32)
    # Views from 0 on: an index that might be negative keeps a loop from being vectorised.
    back_gates, back_new, bias = back[0, : 2 * dim], back[0, 2 * dim :], weights.hidden_bias
    for t in range(len(inputs)):
        gates, update, ahead_new = every[t, : 2 * dim], every[t, dim : 2 * dim], every[t, 2 * dim :]
        for k in range(len(bias)):
            back[0, k] = bias[k]
        add_products(state, 1, weights.hidden, back)
        for k in range(len(gates)):
            gates[k] += back_gates[k]
        sigmoid(gates, 2 * dim, bits)  # r and z
        for k in range(len(new)):
            # tanh(x) = 2 sigmoid(2 x) - 1
            new[k] = np.float32(2.0) * (ahead_new[k] + gates[k] * back_new[k])
        sigmoid(new, dim, bits)
        for k in range(len(new)):
            value = np.float32(2.0) * new[k] - np.float32(1.0)
            hidden[k] = value + update[k] * (hidden[k] - value)
            total[k] += inputs[t, k]
    state[2] = inputs[len(inputs) - 1]


@njit(cache=True, nogil=True, fastmath=True)
def _read_gru(weights: GRU, state: Floats, count: int) -> Floats:
    user = weights.project_bias.copy()
    add_product(state[0], weights.project, user)
    add_product(state[2], weights.last, user)
    add_product(state[1] / np.float32(count), weights.mean, user)
    return user


@njit(cache=True, nogil=True, fastmath=True)
def _read_pooled(weights: Pooled, state: Floats, count: int) -> Floats:
    dim = state.shape[1]
    both = np.empty(2 * dim, np.float32)
    both[:dim] = state[0] / np.float32(count)
    both[dim:] = state[1]
    hidden = weights.first_bias.copy()
    add_product(both, weights.first, hidden)
    user = weights.second_bias.copy()
    add_product(np.maximum(hidden, np.float32(0.0)), weights.second, user)
    add_product(both[dim:], weights.last, user)
    add_product(both[:dim], weights.mean, user)
    return user
