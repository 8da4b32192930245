"""The user encoders of `pathdex.model.encoders`, one history at a time.

A compiled encoder reads a history item by item into a state (row, dim) and computes the user vector from it, so a state
can be kept and continued with the next item. To add an encoder, write a class and three functions and enter them in
`ENCODERS` and `FUNCTIONS`; an encoder without an entry runs in torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.kernels.attention import Attention, advance_attention, attention_rows, read_attention
from pathdex.kernels.gemm import gemv_accumulate
from pathdex.kernels.gru import GRU, advance_gru, gru_rows, read_gru
from pathdex.kernels.layout import as_matrix, as_readonly
from pathdex.kernels.prefetch import ROW_LINES, prefetch_lines
from pathdex.kernels.types import Floats

Weights = Mapping[str, NDArray[Any]]


class Encoder(Protocol):
    """The packed weights of an encoder."""

    @classmethod
    def pack(cls, weights: Weights) -> Self:
        """Pack weights by their names in the model, without the prefix `encoder.`."""


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


@njit(cache=True, nogil=True)
def pooled_rows(weights: Pooled, capacity: int) -> int:
    """The number of rows of a state."""
    return 2


@njit(cache=True, nogil=True)
def advance_pooled(weights: Pooled, state: Floats, count: int, inputs: Floats) -> None:
    """Update a state with further inputs (time, dim)."""
    for t in range(len(inputs)):
        state[0] += inputs[t]
    state[1] = inputs[len(inputs) - 1]


@njit(cache=True, nogil=True, fastmath=True)
def read_pooled(weights: Pooled, state: Floats, count: int) -> Floats:
    """The user vector after `count` inputs."""
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


class Functions(NamedTuple):
    """The compiled functions of an encoder."""

    state_rows: Any
    """state_rows(encoder, capacity): the number of rows of a state that reads at most `capacity` inputs."""
    advance: Any
    """advance(encoder, state, count, inputs): update a state that has read `count` inputs with more (time, dim)."""
    read: Any
    """read(encoder, state, count): the user vector after `count` inputs."""


ENCODERS: dict[str, type[GRU | Pooled | Attention]] = {"gru": GRU, "pooled": Pooled, "attention": Attention}
FUNCTIONS = {
    GRU: Functions(gru_rows, advance_gru, read_gru),
    Pooled: Functions(pooled_rows, advance_pooled, read_pooled),
    Attention: Functions(attention_rows, advance_attention, read_attention),
}


def _compiled(name: str) -> Any:
    """A function that compiled code calls with any encoder first: the one of `Functions` for its class."""

    def of_encoder(encoder: Encoder, *arguments: Any) -> Any:
        raise NotImplementedError

    @overload(of_encoder)
    def choose(encoder, *arguments):  # type: ignore[no-untyped-def]  # Names must equal those of the implementation.
        function = getattr(FUNCTIONS[encoder.instance_class], name)
        return lambda encoder, *arguments: function(encoder, *arguments)

    return of_encoder


_state_rows, _advance, _read = map(_compiled, Functions._fields)


@njit(cache=True, nogil=True)
def encode_history(
    encoder: Encoder, table: Floats, start: Floats, history: NDArray[np.integer], length: int
) -> tuple[Floats, Floats, int]:
    """The state after the latest `length` items of a history, the user vector, and the number of inputs.

    The inputs are `start`, unless the history has `length` items, and the first columns of the items' rows in `table`.
    """
    latest = history[max(0, len(history) - length) :]
    count = len(latest) + (len(latest) < length)
    inputs = np.empty((count, len(start)), np.float32)
    if count > len(latest):
        for k in range(len(start)):
            inputs[0, k] = start[k]
    copy_inputs(table, latest, inputs[count - len(latest) :])
    state = np.zeros((_state_rows(encoder, length), len(start)), np.float32)
    _advance(encoder, state, 0, inputs)
    return state, _read(encoder, state, count), count


@njit(cache=True, nogil=True)
def advance_state(encoder: Encoder, table: Floats, state: Floats, count: int, item: int) -> tuple[Floats, Floats]:
    """A copy of a state that has read `count` inputs, after one more item, and the user vector."""
    state = state.copy()
    inputs = np.empty((1, state.shape[1]), np.float32)
    copy_inputs(table, np.full(1, item), inputs)
    _advance(encoder, state, count, inputs)
    return state, _read(encoder, state, count + 1)


@njit(cache=True, nogil=True)
def copy_inputs(table: Floats, items: NDArray[np.integer], inputs: Floats) -> None:
    """Write the input vectors of items: the first columns of their rows."""
    for item in items:
        prefetch_lines(table, item, ROW_LINES)
    for t in range(len(items)):
        row, vector = table[items[t]], inputs[t]
        for k in range(len(vector)):
            vector[k] = row[k]
