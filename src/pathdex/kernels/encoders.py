"""The user encoders of `pathdex.model.encoders`, one history or a few at a time.

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
from pathdex.kernels.gru import GRU, HISTORIES, advance_gru, advance_grus, gru_rows, read_gru
from pathdex.kernels.layout import as_matrix, as_readonly
from pathdex.kernels.prefetch import ROW_LINES, prefetch_lines
from pathdex.kernels.types import Floats, Ints

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
    advance_all: Any = None
    """advance_all(encoder, states, inputs, starts): update new states (history, row, dim), at most `TOGETHER`, each
    with the inputs from `starts[i]` to `starts[i + 1]`. Optional; the result is that of `advance`, bit for bit."""


TOGETHER = HISTORIES
"""Histories that are encoded in one call."""
ENCODERS: dict[str, type[GRU | Pooled | Attention]] = {"gru": GRU, "pooled": Pooled, "attention": Attention}
FUNCTIONS = {
    GRU: Functions(gru_rows, advance_gru, read_gru, advance_grus),
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


_state_rows, _advance, _read = map(_compiled, ("state_rows", "advance", "read"))


def _advance_all(encoder: Encoder, states: Floats, inputs: Floats, starts: Ints) -> None:
    raise NotImplementedError


@overload(_advance_all)
def _choose_advance_all(encoder, states, inputs, starts):  # type: ignore[no-untyped-def]
    function = FUNCTIONS[encoder.instance_class].advance_all
    if function is not None:
        return lambda encoder, states, inputs, starts: function(encoder, states, inputs, starts)

    def one_by_one(encoder, states, inputs, starts):  # type: ignore[no-untyped-def]
        for i in range(len(states)):
            _advance(encoder, states[i], 0, inputs[starts[i] : starts[i + 1]])

    return one_by_one


@njit(cache=True, nogil=True)
def encode_history(
    encoder: Encoder, table: Floats, start: Floats, history: NDArray[np.integer], length: int
) -> tuple[Floats, Floats, int]:
    """The state after the latest `length` items of a history, the user vector, and the number of inputs.

    The inputs are `start`, unless the history has `length` items, and the first columns of the items' rows in `table`.
    """
    offsets = np.zeros(2, np.int64)
    offsets[1] = len(history)
    states, users, starts = encode_histories(encoder, table, start, history, offsets, length)
    return states[0], users[0], starts[1]


@njit(cache=True, nogil=True)
def encode_histories(
    encoder: Encoder, table: Floats, start: Floats, histories: NDArray[np.integer], offsets: Ints, length: int
) -> tuple[Floats, Floats, Ints]:
    """States (history, row, dim) and user vectors of at most `TOGETHER` histories, and where the inputs of each begin.

    The inputs are those of `encode_history`. History i is `histories[offsets[i] : offsets[i + 1]]`.
    """
    count, dim = len(offsets) - 1, len(start)
    starts = np.zeros(count + 1, np.int64)
    for i in range(count):
        starts[i + 1] = starts[i] + min(offsets[i + 1] - offsets[i] + 1, length)
    inputs = np.empty((starts[count], dim), np.float32)
    for i in range(count):
        latest = histories[max(offsets[i], offsets[i + 1] - length) : offsets[i + 1]]
        if starts[i + 1] - starts[i] > len(latest):
            for k in range(dim):
                inputs[starts[i], k] = start[k]
        copy_inputs(table, latest, inputs[starts[i + 1] - len(latest) : starts[i + 1]])
    states = np.zeros((count, _state_rows(encoder, length), dim), np.float32)
    _advance_all(encoder, states, inputs, starts)
    users = np.empty((count, dim), np.float32)
    for i in range(count):
        user = _read(encoder, states[i], starts[i + 1] - starts[i])
        for k in range(dim):
            users[i, k] = user[k]
    return states, users, starts


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
