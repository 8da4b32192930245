"""The structure models of `pathdex.model.structure`, one user at a time: begin, logits, advance.

K nodes, D layers, H hidden units. The MLP's state holds the sums of all D layers, W_x x + sum_l T_l[c_l], to which a
chosen node adds one row of a table. The recurrent model's state is the hidden vector of its GRU cell, whose product
with a node's embedding is such a row as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.arithmetic import Floats, add_product, sigmoid
from pathdex.kernels.gemm import LANES, ROWS, add_products
from pathdex.kernels.layout import frozen, linear
from pathdex.kernels.softmax import PADDING, log_sum_exp_row

TOGETHER = 2 * ROWS
"""States whose layer is computed at once: enough to fill a tile, few enough to stop early where p is peaked."""


class StructureWeights(NamedTuple):
    """Both kinds of structure model; `cell` and `cell_bias` are empty for the MLP."""

    recurrent: bool
    num_nodes: int
    depth: int
    user: Floats
    """(dim, state)"""
    user_bias: Floats
    nodes: Floats
    """(layer, node, row): what choosing a node adds."""
    cell: Floats
    """(hidden, gate x hidden), gates r, z, n."""
    cell_bias: Floats
    outputs: Floats
    """(layer, hidden, node), nodes padded with zeros."""
    bias: Floats
    """(layer, node), padded with the logit of no node."""

    @classmethod
    def pack(cls, weights: Mapping[str, NDArray[Any]]) -> StructureWeights:
        """From the structure's weights by their names in the model, without the prefix `structure.`."""
        depth = 1 + sum(name.startswith("nodes.") for name in weights)
        outputs = np.stack([weights[f"outputs.{layer}.weight"] for layer in range(depth)])
        bias = np.stack([weights[f"outputs.{layer}.bias"] for layer in range(depth)])
        num_nodes, hidden = outputs.shape[1:]
        recurrent = "cell.weight_ih" in weights
        if recurrent:
            nodes = [
                weights[f"nodes.{layer}"] @ weights["cell.weight_ih"].T + weights["cell.bias_ih"]
                for layer in range(depth - 1)
            ]
            row = 3 * hidden
        else:
            nodes = [weights[f"nodes.{layer}"] @ weights[f"inputs.{layer}.weight"].T for layer in range(depth - 1)]
            row = depth * hidden
        table = np.zeros((depth, num_nodes, row), np.float32)
        for layer, rows in enumerate(nodes):
            table[layer, :, row - rows.shape[1] :] = rows  # Sums of earlier layers stay as they are.
        padding = -num_nodes % LANES
        return cls(
            recurrent,
            num_nodes,
            depth,
            linear(weights["user.weight"]),
            frozen(weights["user.bias"]),
            frozen(table),
            linear(weights["cell.weight_hh"]) if recurrent else frozen(np.empty((0, 0))),
            frozen(weights["cell.bias_hh"]) if recurrent else frozen(np.empty(0)),
            frozen(np.pad(outputs.transpose(0, 2, 1), ((0, 0), (0, 0), (0, padding)))),
            frozen(np.pad(bias, ((0, 0), (0, padding)), constant_values=PADDING)),
        )


class Scratch(NamedTuple):
    """Room for the arithmetic of one layer."""

    hidden: Floats
    """(state, hidden)"""
    logits: Floats
    """(state, padded node): where `score_nodes` leaves its answer."""
    norms: Floats
    """(state,): log p is the score less this."""
    bits: NDArray[np.int32]
    gates: Floats
    back: Floats


@njit(cache=True, nogil=True)
def new_scratch(weights: StructureWeights) -> Scratch:
    hidden, padded = weights.outputs.shape[1:]
    return Scratch(
        np.empty((TOGETHER, hidden), np.float32),
        np.empty((TOGETHER, padded), np.float32),
        np.empty(TOGETHER, np.float32),
        np.empty(2 * hidden, np.int32),
        np.empty(3 * hidden, np.float32),
        np.empty(3 * hidden, np.float32),
    )


@njit(cache=True, nogil=True)
def begin(weights: StructureWeights, user: Floats) -> Floats:
    """The state before the first layer."""
    state = weights.user_bias.copy()
    add_product(user, weights.user, state)
    return np.tanh(state) if weights.recurrent else state


@njit(cache=True, nogil=True, fastmath=True)
def score_nodes(weights: StructureWeights, states: Floats, layer: int, scratch: Scratch) -> None:
    """Leave the scores of a layer's nodes and their norms in `scratch`, for at most TOGETHER states."""
    units = weights.outputs.shape[1]
    first = 0 if weights.recurrent else layer * units
    for row in range(len(states)):
        sums, hidden = states[row, first : first + units], scratch.hidden[row]
        for h in range(len(hidden)):
            hidden[h] = max(sums[h], np.float32(0.0))
        scratch.logits[row] = weights.bias[layer]
    add_products(scratch.hidden, len(states), weights.outputs[layer], scratch.logits)
    for row in range(len(states)):
        scratch.norms[row] = log_sum_exp_row(scratch.logits, row)  # type: ignore[call-arg]


@njit(cache=True, nogil=True, fastmath=True)
def advance(
    weights: StructureWeights,
    states: Floats,
    parents: NDArray[np.int64],
    layer: int,
    nodes: NDArray[np.integer],
    scratch: Scratch,
    after: Floats,
) -> None:
    """Write to `after[i]` the state that follows `states[parents[i]]` when `nodes[i]` is chosen."""
    if not weights.recurrent:
        first = (layer + 1) * weights.outputs.shape[1]  # The sums of earlier layers are done with.
        for i in range(len(nodes)):
            sums, old, row = after[i, first:], states[parents[i], first:], weights.nodes[layer, nodes[i], first:]
            for k in range(len(sums)):
                sums[k] = old[k] + row[k]
        return
    hidden = states.shape[1]
    gates, back = scratch.gates, scratch.back
    for i in range(len(nodes)):
        state, row = states[parents[i]], weights.nodes[layer, nodes[i]]
        back[:] = weights.cell_bias
        add_product(state, weights.cell, back)
        for k in range(2 * hidden):
            gates[k] = row[k] + back[k]
        sigmoid(gates, 2 * hidden, scratch.bits)
        for k in range(hidden):
            value = np.tanh(row[2 * hidden + k] + gates[k] * back[2 * hidden + k])
            after[i, k] = value + gates[hidden + k] * (state[k] - value)
