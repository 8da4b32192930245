"""The structure loss -log sum_j p(c_j | x) of a block of samples, and its gradient.

The logits of a layer depend on the user and on the nodes before it, so paths of a sample that share a prefix share a
*row*: one for the first layer, at most J for later ones. Samples pass through all layers in tiles that stay in the
cache. Legend: n samples, J paths, D layers, K nodes padded to whole vectors, H hidden units.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pathdex.kernels.gemm import ROWS, gemm_accumulate
from pathdex.kernels.path_gradient import pair, sampled_gradient
from pathdex.kernels.softmax import softmax_row
from pathdex.kernels.sparse import gather_relu
from pathdex.kernels.types import Floats, Ints

TILE = 32
"""Samples of a tile."""
_ZERO, _SMALLEST = np.float32(0.0), np.float32(1e-30)


@njit(cache=True, nogil=True)
def path_loss(
    sums: Floats,
    nodes: Floats,
    matrices: Floats,
    outputs: Floats,
    bias: Floats,
    paths: Ints,
    offsets: Floats,
    draws: int,
    nodes_gradient: Floats,
    outputs_gradient: Floats,
    bias_gradient: Floats,
) -> float:
    """The summed loss. Overwrites the sums by their gradient and adds to the other gradients.

    Sums (n, D, H) are W_x x + b. Nodes (pair, node, H) are what a node adds to a later layer, with the layers in the
    order of `pair`. Outputs (D, node, H) are each layer's weights, `matrices` (D, H, K) their transposes and `bias`
    (D, K), with a very low bias for nodes that do not exist. Paths (n, J, D). The gradient is exact for the targets and
    from `draws` draws per sample and layer for other nodes, with `offsets` (n,) uniform in [0, 1).
    """
    (size, depth), width = paths.shape[1:], sums.shape[2]
    most = (TILE * size + ROWS - 1) // ROWS * ROWS
    rows, owners = np.empty((depth, TILE, size), np.int64), np.empty((depth, most), np.int64)
    hidden, shares = np.zeros((depth, most, width), np.float32), np.empty((depth, most, bias.shape[1]), np.float32)
    counts, total, loss = np.empty(depth, np.int64), np.empty((TILE, size), np.float32), 0.0
    for first in range(0, len(paths), TILE):
        last = min(first + TILE, len(paths))
        tile, own = paths[first:last], sums[first:last]
        total[:] = _ZERO
        for layer in range(depth):
            counts[layer] = count = prefix_rows(tile, layer, rows, owners[layer])
            hidden_rows(own, nodes, tile, owners[layer], layer, count, hidden[layer])
            whole = (count + ROWS - 1) // ROWS * ROWS  # A product of whole tiles is faster than one with a remainder.
            fill_rows(bias[layer], whole, shares[layer])
            gemm_accumulate(hidden[layer], whole, matrices[layer], shares[layer])
            add_log_probabilities(shares[layer], rows[layer], tile, layer, count, total)
        loss += responsibilities(total, len(tile))
        for layer in range(depth):
            sampled_gradient(
                shares[layer],
                rows[layer],
                owners[layer, : counts[layer]],
                tile,
                layer,
                total,
                offsets[first:last],
                draws,
                hidden[layer],
                outputs[layer],
                own,
                nodes_gradient,
                outputs_gradient[layer],
                bias_gradient[layer],
            )
    return loss


@njit(cache=True, nogil=True)
def prefix_rows(paths: Ints, layer: int, rows: Ints, owners: Ints) -> int:
    """Number the distinct prefixes of length `layer` of each sample; returns how many there are.

    rows[layer] (n, J) receives the row of each path, from those of the layer before, and `owners` (n * J,) for each row
    the place i * J + j of its first path. The rows of a sample are consecutive.
    """
    count = 0
    for i in range(len(paths)):
        for j in range(paths.shape[1]):
            same = -1
            for k in range(j):
                if layer == 0 or (
                    rows[layer - 1, i, k] == rows[layer - 1, i, j] and paths[i, k, layer - 1] == paths[i, j, layer - 1]
                ):
                    same = k
                    break
            if same >= 0:
                rows[layer, i, j] = rows[layer, i, same]
            else:
                rows[layer, i, j] = count
                owners[count] = i * paths.shape[1] + j
                count += 1
    return count


@njit(cache=True, nogil=True)
def hidden_rows(sums: Floats, nodes: Floats, paths: Ints, owners: Ints, layer: int, count: int, hidden: Floats) -> None:
    """hidden[row] = relu(sum of the user's part and of what the nodes before `layer` add)."""
    (size, depth), width, num_nodes = paths.shape[1:], hidden.shape[1], nodes.shape[1]
    ones, places = np.ones(depth, np.float32), np.empty(depth, np.int64)
    by_row, by_node = sums.reshape(-1, width), nodes.reshape(-1, width)
    for row in range(count):
        i, j = owners[row] // size, owners[row] % size
        for one in range(layer):
            places[one] = pair(one, layer) * num_nodes + paths[i, j, one]
        gather_relu(ones, places, layer, by_node, by_row, i * depth + layer, hidden, row)


@njit(cache=True, nogil=True)
def fill_rows(values: Floats, count: int, rows: Floats) -> None:
    """rows[:count] = values."""
    for row in range(count):
        for k in range(len(values)):
            rows[row, k] = values[k]


@njit(cache=True, nogil=True)
def add_log_probabilities(logits: Floats, rows: Ints, paths: Ints, layer: int, count: int, total: Floats) -> None:
    """Replace logits[:count] by their softmax and add log p of each path's node to `total` (n, J)."""
    for row in range(count):
        softmax_row(logits, row)
    for i in range(len(paths)):
        for j in range(paths.shape[1]):
            total[i, j] += np.log(max(logits[rows[i, j], paths[i, j, layer]], _SMALLEST))


@njit(cache=True, nogil=True)
def responsibilities(total: Floats, samples: int) -> float:
    """Replace log p (n, J) of the first samples by p_j / sum_j p_j; returns -sum_i log sum_j p."""
    loss = 0.0
    for i in range(samples):
        top = total[i, 0]
        for j in range(1, total.shape[1]):
            top = max(top, total[i, j])
        mass = _ZERO
        for j in range(total.shape[1]):
            total[i, j] = np.exp(total[i, j] - top)
            mass += total[i, j]
        for j in range(total.shape[1]):
            total[i, j] /= mass
        loss -= np.float64(top) + np.log(np.float64(mass))
    return loss
