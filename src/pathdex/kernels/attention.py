"""The attention encoder, one history at a time.

The rows of a state are the last input, the hidden vector before the last block, its query, and then for each block the
keys and the values of the inputs so far. The last block is computed only when the user vector is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.gemm import LANES, gemv_accumulate
from pathdex.kernels.layout import as_matrix, as_readonly
from pathdex.kernels.softmax import PADDING, softmax_row
from pathdex.kernels.types import Floats

HEADER = 3
"""Rows of a state before the keys and values."""
EPSILON = np.float32(1e-5)


class Attention(NamedTuple):
    """The weights of all blocks (block, ...), then those of the whole encoder."""

    heads: int
    norm: Floats
    """(block, 2, dim): scale and shift."""
    qkv: Floats
    qkv_bias: Floats
    merge: Floats
    merge_bias: Floats
    forward_norm: Floats
    first: Floats
    first_bias: Floats
    second: Floats
    second_bias: Floats
    final_norm: Floats
    last: Floats

    @classmethod
    def pack(cls, weights: Mapping[str, NDArray[Any]]) -> Attention:
        """Pack weights by their names in the model, without the prefix `encoder.`."""
        blocks = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))

        def each(name: str) -> NDArray[Any]:
            return np.stack([weights[f"blocks.{block}.{name}"] for block in range(blocks)])

        def norm(name: str) -> Floats:
            return as_readonly(np.stack([each(f"{name}.weight"), each(f"{name}.bias")], axis=1))

        dim = len(weights["norm.weight"])
        return cls(
            2 if dim % 2 == 0 else 1,
            norm("norm"),
            as_matrix(each("query_key_value.weight")),
            as_readonly(each("query_key_value.bias")),
            as_matrix(each("merge.weight")),
            as_readonly(each("merge.bias")),
            norm("forward_network.0"),
            as_matrix(each("forward_network.1.weight")),
            as_readonly(each("forward_network.1.bias")),
            as_matrix(each("forward_network.4.weight")),
            as_readonly(each("forward_network.4.bias")),
            as_readonly(np.stack([weights["norm.weight"], weights["norm.bias"]])),
            as_matrix(weights["last.weight"]),
        )


@njit(cache=True, nogil=True)
def attention_rows(weights: Attention, capacity: int) -> int:
    """The number of rows of a state that reads at most `capacity` inputs."""
    return HEADER + 2 * capacity * len(weights.merge)


@njit(cache=True, nogil=True, fastmath=True)
def advance_attention(weights: Attention, state: Floats, count: int, inputs: Floats) -> None:
    """Update a state that has read `count` inputs with further ones (time, dim)."""
    blocks, dim = len(weights.merge), state.shape[1]
    for t in range(len(inputs)):
        hidden = inputs[t].copy()
        for block in range(blocks):
            qkv = weights.qkv_bias[block].copy()
            gemv_accumulate(_normed(hidden, weights.norm[block]), weights.qkv[block], qkv)
            keys, values = _cache(state, block, blocks)
            keys[count + t] = qkv[dim : 2 * dim]
            values[count + t] = qkv[2 * dim :]
            if block + 1 < blocks:
                hidden = _block_output(weights, block, hidden, qkv[:dim], keys, values, count + t + 1)
            else:
                state[1] = hidden
                state[2] = qkv[:dim]
    state[0] = inputs[len(inputs) - 1]


@njit(cache=True, nogil=True, fastmath=True)
def read_attention(weights: Attention, state: Floats, count: int) -> Floats:
    """The user vector after `count` inputs."""
    blocks = len(weights.merge)
    keys, values = _cache(state, blocks - 1, blocks)
    hidden = _block_output(weights, blocks - 1, state[1].copy(), state[2], keys, values, count)
    user = _normed(hidden, weights.final_norm)
    gemv_accumulate(state[0], weights.last, user)
    return user


@njit(cache=True, nogil=True)
def _cache(state: Floats, block: int, blocks: int) -> tuple[Floats, Floats]:
    capacity = (len(state) - HEADER) // (2 * blocks)
    first = HEADER + 2 * block * capacity
    return state[first : first + capacity], state[first + capacity : first + 2 * capacity]


@njit(cache=True, nogil=True, fastmath=True)
def _block_output(
    weights: Attention, block: int, hidden: Floats, query: Floats, keys: Floats, values: Floats, count: int
) -> Floats:
    """The output of a block at the last of `count` positions."""
    size = len(query) // weights.heads
    scale = np.float32(1.0) / np.sqrt(np.float32(size))
    attended = np.zeros(len(query), np.float32)
    share = np.empty((1, (count + LANES - 1) // LANES * LANES), np.float32)
    for head in range(weights.heads):
        begin = head * size
        slope = np.float32(2.0 ** (-3 * head - 1))
        for t in range(count):
            total = np.float32(0.0)
            for k in range(begin, begin + size):
                total += query[k] * keys[t, k]
            share[0, t] = total * scale - slope * np.float32(count - 1 - t)
        share[0, count:] = PADDING
        softmax_row(share, 0)
        for t in range(count):
            for k in range(begin, begin + size):
                attended[k] += share[0, t] * values[t, k]
    gemv_accumulate(attended, weights.merge[block], hidden)
    hidden += weights.merge_bias[block]
    inner = weights.first_bias[block].copy()
    gemv_accumulate(_normed(hidden, weights.forward_norm[block]), weights.first[block], inner)
    result: Floats = hidden + weights.second_bias[block]
    gemv_accumulate(np.maximum(inner, np.float32(0.0)), weights.second[block], result)
    return result


@njit(cache=True, nogil=True, fastmath=True)
def _normed(vector: Floats, norm: Floats) -> Floats:
    """Layer normalisation with scale `norm[0]` and shift `norm[1]`."""
    dim = len(vector)
    mean = np.float32(0.0)
    for k in range(dim):
        mean += vector[k]
    mean /= np.float32(dim)
    spread = np.float32(0.0)
    for k in range(dim):
        spread += (vector[k] - mean) ** 2
    scale = np.float32(1.0) / np.sqrt(spread / np.float32(dim) + EPSILON)
    result = np.empty(dim, np.float32)
    for k in range(dim):
        result[k] = (vector[k] - mean) * scale * norm[0, k] + norm[1, k]
    return result
