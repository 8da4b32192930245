"""The structure models of `pathdex.model.structure`: packed weights, one layer, and the state of a user's prefixes.

K nodes, D layers, H hidden units. The MLP's state holds the sums of all D layers, W_x x + sum_l T_l[c_l], to which a
chosen node adds one row of a table. The recurrent model's state is the hidden vector of its GRU cell; its table holds
the cell's products with the node embeddings. Queries and the scoring of items for the M-step use the same packed
weights and the same layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.exp import sigmoid
from pathdex.kernels.gemm import LANES, ROWS, gemm_accumulate, gemv_accumulate
from pathdex.kernels.layout import as_matrix, as_readonly, as_weights
from pathdex.kernels.softmax import PADDING, log_sum_exp_row, softmax_row
from pathdex.kernels.types import Floats

STATES = 2 * ROWS
"""States that a query scores at once: enough to fill a tile, few enough to stop early where p is peaked."""
_NO_VECTOR, _NO_MATRIX = np.empty(0, np.float32), np.empty((0, 0), np.float32)


class StructureWeights(NamedTuple):
    """The weights of an MLP or a recurrent structure model, laid out for row-wise access."""

    recurrent: bool
    num_nodes: int
    depth: int
    nodes: Floats
    """(layer, node, row): what choosing a node adds; for the MLP a row is (layer, hidden), flattened."""
    outputs: Floats
    """(layer, hidden, node), nodes padded with zeros to whole tiles."""
    bias: Floats
    """(layer, node), padded with `PADDING`."""
    user: Floats
    """(dim, state); empty where states come from torch."""
    user_bias: Floats
    cell: Floats
    """(hidden, gate x hidden), gates r, z, n; empty for the MLP."""
    cell_bias: Floats

    @classmethod
    def from_layers(
        cls,
        nodes: NDArray[Any],
        outputs: NDArray[Any],
        bias: NDArray[Any],
        *,
        user: NDArray[Any] = _NO_MATRIX,
        user_bias: NDArray[Any] = _NO_VECTOR,
        cell: NDArray[Any] = _NO_MATRIX,
        cell_bias: NDArray[Any] = _NO_VECTOR,
    ) -> StructureWeights:
        """Pack node tables (layer, node, ...), outputs (layer, node, hidden) and bias (layer, node).

        `user` and `cell` are (out, in) as in torch. Without `user` the weights score given states only.
        """
        depth, num_nodes = bias.shape
        padding = -num_nodes % LANES
        return cls(
            len(cell) > 0,
            num_nodes,
            depth,
            as_weights(nodes.reshape(depth, num_nodes, -1)),
            as_weights(np.pad(outputs.transpose(0, 2, 1), ((0, 0), (0, 0), (0, padding)))),
            as_readonly(np.pad(bias, ((0, 0), (0, padding)), constant_values=PADDING)),
            as_matrix(user),
            as_readonly(user_bias),
            as_matrix(cell),
            as_readonly(cell_bias),
        )

    @classmethod
    def pack(cls, weights: Mapping[str, NDArray[Any]]) -> StructureWeights:
        """Pack weights by their names in the model, without the prefix `structure.`."""
        depth = 1 + sum(name.startswith("nodes.") for name in weights)
        outputs = np.stack([weights[f"outputs.{layer}.weight"] for layer in range(depth)])
        bias = np.stack([weights[f"outputs.{layer}.bias"] for layer in range(depth)])
        num_nodes, hidden = outputs.shape[1:]
        recurrent = "cell.weight_ih" in weights
        nodes = np.zeros((depth, num_nodes, (3 if recurrent else depth) * hidden), np.float32)
        for layer in range(depth - 1):
            if recurrent:
                nodes[layer] = weights[f"nodes.{layer}"] @ weights["cell.weight_ih"].T + weights["cell.bias_ih"]
            else:  # A node changes the sums of the later layers only.
                first = (layer + 1) * hidden
                nodes[layer, :, first:] = weights[f"nodes.{layer}"] @ weights[f"inputs.{layer}.weight"].T
        cell = {"cell": weights["cell.weight_hh"], "cell_bias": weights["cell.bias_hh"]} if recurrent else {}
        return cls.from_layers(
            nodes, outputs, bias, user=weights["user.weight"], user_bias=weights["user.bias"], **cell
        )


@njit(cache=True, nogil=True, fastmath=True)
def layer_logits(weights: StructureWeights, layer: int, sums: Floats, count: int, logits: Floats) -> None:
    """logits[:count] = relu(sums[:count]) @ outputs + bias of one layer; `sums` (row, hidden) become their relu."""
    for row in range(count):
        _relu(sums[row], sums[row])
    _add_products(weights, layer, sums, count, logits)


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _relu(sums: Floats, result: Floats) -> None:
    for h in range(len(result)):
        result[h] = max(sums[h], np.float32(0.0))


@njit(cache=True, nogil=True, inline="always")
def _add_products(weights: StructureWeights, layer: int, hidden: Floats, count: int, logits: Floats) -> None:
    bias = weights.bias[layer]
    for row in range(count):
        own = logits[row]
        for k in range(len(own)):
            own[k] = bias[k]
    gemm_accumulate(hidden, count, weights.outputs[layer], logits)


@njit(cache=True, nogil=True)
def layer_probabilities(weights: StructureWeights, layer: int, sums: Floats, count: int, result: Floats) -> None:
    """The softmax of `layer_logits`, row by row, in `result[:count]`."""
    layer_logits(weights, layer, sums, count, result)
    for row in range(count):
        softmax_row(result, row)


class Scratch(NamedTuple):
    """Memory for the arithmetic of one layer of a query."""

    hidden: Floats
    """(state, hidden)"""
    logits: Floats
    """(state, padded node): the result of `score_nodes`."""
    norms: Floats
    """(state,): log p is the logit minus this."""
    gates: Floats
    recurrent: Floats
    """The cell's product with its state."""


@njit(cache=True, nogil=True)
def new_scratch(weights: StructureWeights) -> Scratch:
    """Scratch memory for `STATES` states."""
    hidden, padded = weights.outputs.shape[1:]
    return Scratch(
        np.empty((STATES, hidden), np.float32),
        np.empty((STATES, padded), np.float32),
        np.empty(STATES, np.float32),
        np.empty(2 * hidden, np.float32),
        np.empty(3 * hidden, np.float32),
    )


@njit(cache=True, nogil=True)
def begin(weights: StructureWeights, user: Floats) -> Floats:
    """The state before the first layer."""
    state = weights.user_bias.copy()
    gemv_accumulate(user, weights.user, state)
    return np.tanh(state) if weights.recurrent else state


@njit(cache=True, nogil=True, fastmath=True)
def score_nodes(weights: StructureWeights, states: Floats, layer: int, scratch: Scratch) -> None:
    """Write the logits of a layer's nodes and their log-sum-exp to `scratch`, for at most `STATES` states."""
    hidden = weights.outputs.shape[1]
    first = 0 if weights.recurrent else layer * hidden
    for row in range(len(states)):
        _relu(states[row, first : first + hidden], scratch.hidden[row])
    _add_products(weights, layer, scratch.hidden, len(states), scratch.logits)
    for row in range(len(states)):
        scratch.norms[row] = log_sum_exp_row(scratch.logits, row)


@njit(cache=True, nogil=True, fastmath=True)
def advance(
    weights: StructureWeights,
    states: Floats,
    parents: NDArray[np.integer],
    layer: int,
    nodes: NDArray[np.integer],
    scratch: Scratch,
    after: Floats,
) -> None:
    """Write to `after[i]` the state that follows `states[parents[i]]` when `nodes[i]` is chosen."""
    if not weights.recurrent:
        first = (layer + 1) * weights.outputs.shape[1]  # Earlier sums are not needed again.
        for i in range(len(nodes)):
            sums, old, row = after[i, first:], states[parents[i], first:], weights.nodes[layer, nodes[i], first:]
            for k in range(len(sums)):
                sums[k] = old[k] + row[k]
        return
    hidden = states.shape[1]
    gates, recurrent = scratch.gates, scratch.recurrent
    for i in range(len(nodes)):
        state, row = states[parents[i]], weights.nodes[layer, nodes[i]]
        for k in range(len(recurrent)):
            recurrent[k] = weights.cell_bias[k]
        gemv_accumulate(state, weights.cell, recurrent)
        for k in range(2 * hidden):
            gates[k] = row[k] + recurrent[k]
        sigmoid(gates)  # r and z
        for k in range(hidden):
            value = np.tanh(row[2 * hidden + k] + gates[k] * recurrent[2 * hidden + k])
            after[i, k] = value + gates[hidden + k] * (state[k] - value)
