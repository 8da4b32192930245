"""The layers of the MLP structure model as compiled code: the arithmetic that beams on the CPU share.

K nodes, D layers, H hidden units. A layer's input is a sum, W_x x + sum_l T_l[c_l], so a query brings its D x H sums
W_x x along and every node chosen adds one row of a table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.arithmetic import Floats
from pathdex.kernels.gemm import LANES, add_products
from pathdex.kernels.softmax import PADDING, softmax_row
from pathdex.kernels.topk import kth_largest


class LayerWeights(NamedTuple):
    """The weights of all layers, laid out for row-wise access."""

    nodes: Floats
    """(layer, node, later layer, hidden): what choosing a node adds to the sums of a later layer."""
    outputs: Floats
    """(layer, hidden, node), nodes padded with zeros to whole tiles."""
    bias: Floats
    """(layer, node), padded with the logit of no node."""
    num_nodes: int

    @classmethod
    def pack(cls, nodes: Floats, outputs: Floats, bias: Floats) -> LayerWeights:
        """From nodes (layer, node, later layer, hidden), outputs (layer, node, hidden) and bias (layer, node)."""
        num_nodes = bias.shape[1]
        padding = -num_nodes % LANES
        return cls(
            np.ascontiguousarray(nodes, np.float32),
            np.ascontiguousarray(np.pad(outputs.transpose(0, 2, 1), ((0, 0), (0, 0), (0, padding))), np.float32),
            np.ascontiguousarray(np.pad(bias, ((0, 0), (0, padding)), constant_values=PADDING), np.float32),
            num_nodes,
        )


@njit(cache=True, nogil=True, fastmath=True)
def hidden_units(sums: Floats, sample: int, layer: int, offset: Floats, hidden: Floats, row: int) -> None:
    """relu(sums[sample, layer] + offset) into `hidden[row]`."""
    for h in range(len(offset)):
        hidden[row, h] = max(sums[sample, layer, h] + offset[h], np.float32(0.0))


@njit(cache=True, nogil=True)
def node_probabilities(hidden: Floats, count: int, outputs: Floats, bias: Floats, result: Floats) -> None:
    """softmax(hidden @ outputs + bias), row by row, into the first `count` rows of `result`."""
    for row in range(count):
        result[row] = bias
    add_products(hidden, count, outputs, result)
    for row in range(count):
        softmax_row(result, row)  # type: ignore[call-arg]


@njit(cache=True, nogil=True)
def largest(
    values: Floats, count: int, keep: int, floor: np.float32, scratch: Floats, chosen: NDArray[np.int64]
) -> int:
    """Write the places of the `keep` largest of the first `count` values to `chosen`, largest first, ties by place.

    Returns how many there are: fewer where fewer values are positive. None of those wanted may lie below `floor`; the
    higher it is, the less is to do. `chosen` and `scratch` have room for `count` places and values.
    """
    size = 0
    for k in range(count):
        chosen[size], scratch[size] = k, values[k]
        size += values[k] >= floor and values[k] > 0
    if size > keep:
        cut = kth_largest(scratch, size, keep)
        above = 0
        for i in range(size):
            above += values[chosen[i]] > cut
        found, equal = 0, keep - above
        for i in range(size):
            value = values[chosen[i]]
            if value > cut or (value == cut and equal > 0):
                equal -= value == cut
                chosen[found] = chosen[i]
                found += 1
        size = keep
    _sort_by_value(values, chosen, size)
    return size


@njit(cache=True, nogil=True)
def _sort_by_value(values: Floats, places: NDArray[np.int64], size: int) -> None:
    """Order the first `size` places by falling value, by insertion: they are few; equal ones stay in their order."""
    for i in range(1, size):
        place = places[i]
        value, j = values[place], i
        while j > 0 and values[places[j - 1]] < value:
            places[j] = places[j - 1]
            j -= 1
        places[j] = place
