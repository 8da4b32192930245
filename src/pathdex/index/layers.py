"""The layers of the MLP structure model as compiled code: the arithmetic that beams on the CPU share.

K nodes, D layers, H hidden units. A layer's input is a sum, W_x x + sum_l T_l[c_l], so a query brings its D x H sums
W_x x along and every node chosen adds one row of a table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.index.arithmetic import Floats, highest, kth_largest, power
from pathdex.index.tiles import LANES, add_products


class LayerWeights(NamedTuple):
    """The weights of all layers, laid out for row-wise access."""

    nodes: Floats
    """(layer, node, later layer, hidden): what choosing a node adds to the sums of a later layer."""
    outputs: Floats
    """(layer, hidden, node), nodes padded with zeros to whole tiles."""
    bias: Floats
    """(layer, node), padded."""
    num_nodes: int

    @classmethod
    def pack(cls, nodes: Floats, outputs: Floats, bias: Floats) -> LayerWeights:
        """From nodes (layer, node, later layer, hidden), outputs (layer, node, hidden) and bias (layer, node)."""
        num_nodes = bias.shape[1]
        padding = -num_nodes % LANES
        return cls(
            np.ascontiguousarray(nodes, np.float32),
            np.ascontiguousarray(np.pad(outputs.transpose(0, 2, 1), ((0, 0), (0, 0), (0, padding))), np.float32),
            np.ascontiguousarray(np.pad(bias, ((0, 0), (0, padding))), np.float32),
            num_nodes,
        )


@njit(cache=True, nogil=True, fastmath=True)
def hidden_units(sums: Floats, offset: Floats, hidden: Floats) -> None:
    """relu(sums + offset) into `hidden`."""
    for h in range(len(sums)):
        hidden[h] = max(sums[h] + offset[h], np.float32(0.0))


@njit(cache=True, nogil=True, fastmath=True)
def node_probabilities(
    hidden: Floats, count: int, outputs: Floats, bias: Floats, num_nodes: int, result: Floats
) -> None:
    """softmax(hidden @ outputs + bias), row by row, into the first `count` rows of `result`."""
    for row in range(count):
        result[row] = bias
    add_products(hidden, count, outputs, result)
    for row in range(count):
        values = result[row]
        top = highest(values, num_nodes)
        total = np.float32(0.0)
        for k in range(num_nodes):
            values[k] = power(values[k] - top)
            total += values[k]
        scale = np.float32(1.0) / total
        for k in range(num_nodes):
            values[k] *= scale


@njit(cache=True, nogil=True)
def largest(values: Floats, count: int, keep: int, scratch: Floats, chosen: NDArray[np.int64]) -> int:
    """Write the places of the `keep` largest of the first `count` values to `chosen`, largest first, ties by place.

    Returns how many there are: fewer where fewer values are positive.
    """
    for k in range(count):
        scratch[k] = values[k]
    cut = kth_largest(scratch, count, min(keep, count))
    found, at_cut = 0, 0
    for k in range(count):
        if values[k] > cut and values[k] > 0:
            chosen[found] = k
            found += 1
    above = found
    for k in range(count):
        if found == keep:
            break
        if values[k] == cut and cut > 0:
            chosen[found] = k
            found += 1
            at_cut += 1
    order = np.argsort(-values[chosen[:above]], kind="mergesort")
    chosen[:above] = chosen[:above][order]
    return found
