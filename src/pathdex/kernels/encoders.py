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
from pathdex.kernels.gemm import gemv_accumulate
from pathdex.kernels.gru import GRU
from pathdex.kernels.layout import as_matrix, as_readonly
from pathdex.kernels.prefetch import ROW_LINES, prefetch_lines
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
            prefetch_lines(table, code, ROW_LINES)
    for t in range(len(codes)):
        if codes[t] < 0:
            inputs[t] = start
        else:
            for k in range(dim):
                inputs[t, k] = table[codes[t], k]
    return inputs


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
