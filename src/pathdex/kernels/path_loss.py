"""The element-wise parts of the structure loss -log sum_j p(c_j | x) and of its gradient.

The logits of a layer depend on the user and on the nodes before it, so paths of a sample that share a prefix share a
*row*: one for the first layer, at most J for later ones. Products between these functions are left to a BLAS.
Legend: n samples, J paths, D layers, K nodes padded to whole vectors, H hidden units.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pathdex.kernels.softmax import softmax_row
from pathdex.kernels.types import Floats, Ints

_ZERO, _SMALLEST = np.float32(0.0), np.float32(1e-30)


@njit(cache=True, nogil=True)
def prefix_rows(paths: Ints, layer: int, before: Ints, after: Ints, owners: Ints) -> int:
    """Number the distinct prefixes of length `layer` of each sample; returns how many there are.

    Paths (n, J, D). `before` (n, J) holds the rows of the prefixes that are one node shorter, `after` receives the
    rows, and `owners` (n * J,) for each row the place i * J + j of its first path.
    """
    count = 0
    for i in range(len(paths)):
        for j in range(paths.shape[1]):
            same = -1
            for k in range(j):
                if before[i, k] == before[i, j] and paths[i, k, layer - 1] == paths[i, j, layer - 1]:
                    same = k
                    break
            if same >= 0:
                after[i, j] = after[i, same]
            else:
                after[i, j] = count
                owners[count] = i * paths.shape[1] + j
                count += 1
    return count


@njit(cache=True, nogil=True, fastmath=True)
def hidden_rows(sums: Floats, nodes: Floats, paths: Ints, owners: Ints, layer: int, hidden: Floats) -> None:
    """hidden[row] = relu(sum of the user's part and of what the nodes before `layer` add).

    Sums (n, D, H) and nodes (layer, node, D, H).
    """
    size, width = paths.shape[1], hidden.shape[1]
    for row in range(len(hidden)):
        i, j = owners[row] // size, owners[row] % size
        for k in range(width):
            hidden[row, k] = sums[i, layer, k]
        for one in range(layer):
            node = paths[i, j, one]
            for k in range(width):
                hidden[row, k] += nodes[one, node, layer, k]
        for k in range(width):
            hidden[row, k] = max(hidden[row, k], _ZERO)


@njit(cache=True, nogil=True)
def add_log_probabilities(
    logits: Floats, bias: Floats, rows: Ints, paths: Ints, layer: int, count: int, total: Floats
) -> None:
    """Replace logits[:count] by their softmax and add log p of each path's node to `total` (n, J)."""
    _add_bias(logits, bias, count)
    for row in range(count):
        softmax_row(logits, row)
    for i in range(len(paths)):
        for j in range(paths.shape[1]):
            total[i, j] += np.log(max(logits[rows[i, j], paths[i, j, layer]], _SMALLEST))


@njit(cache=True, nogil=True)
def responsibilities(total: Floats) -> float:
    """Replace log p (n, J) by p_j / sum_j p_j; returns -sum_i log sum_j p."""
    loss = 0.0
    for i in range(len(total)):
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


@njit(cache=True, nogil=True)
def logit_gradient(
    shares: Floats,
    rows: Ints,
    paths: Ints,
    layer: int,
    each: Floats,
    negligible: np.float32,
    weights: Floats,
    kept: Ints,
    gradient: Floats,
    bias_gradient: Floats,
) -> int:
    """The gradient of the loss with respect to a layer's logits, for the rows that matter; returns their number.

    `shares` (row, K) is the softmax, `each` (n, J) the responsibilities; `weights` (row,) receives their sums by row.
    Rows whose sum is below `negligible` are left out: `kept` receives the others and `gradient` their gradient.
    """
    count, made = 0, 0
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            count = max(count, rows[i, j] + 1)
    for row in range(count):
        weights[row] = _ZERO
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            weights[rows[i, j]] += each[i, j]
    for row in range(count):
        if weights[row] >= negligible:
            _scale_row(shares, row, weights[row], gradient, made)
            kept[made] = row
            weights[row] = np.float32(made)
            made += 1
        else:
            weights[row] = np.float32(-1.0)
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            place = int(weights[rows[i, j]])
            if place >= 0:
                gradient[place, paths[i, j, layer]] -= each[i, j]
    _sum_rows(gradient, made, bias_gradient)
    return made


@njit(cache=True, nogil=True, fastmath=True)
def scatter_hidden(
    gradient: Floats,
    hidden: Floats,
    kept: Ints,
    paths: Ints,
    owners: Ints,
    layer: int,
    sums: Floats,
    nodes: Floats,
) -> None:
    """Add the gradient of hidden rows to that of the sums (n, D, H) and of the node table (layer, node, D, H).

    `gradient` (place, H) is that with respect to relu's result hidden[kept[place]]; where this is 0, nothing flows.
    """
    size, width = paths.shape[1], hidden.shape[1]
    for place in range(len(kept)):
        row = kept[place]
        i, j = owners[row] // size, owners[row] % size
        for k in range(width):
            gradient[place, k] = gradient[place, k] if hidden[row, k] > _ZERO else _ZERO
        for k in range(width):
            sums[i, layer, k] += gradient[place, k]
        for one in range(layer):
            node = paths[i, j, one]
            for k in range(width):
                nodes[one, node, layer, k] += gradient[place, k]


@njit(cache=True, nogil=True, fastmath=True)
def _add_bias(logits: Floats, bias: Floats, count: int) -> None:
    for row in range(count):
        for k in range(len(bias)):
            logits[row, k] += bias[k]


@njit(cache=True, nogil=True, fastmath=True)
def _scale_row(source: Floats, row: int, scale: np.float32, target: Floats, place: int) -> None:
    """target[place] = scale source[row]; rows are passed as numbers, since a view costs more than the product."""
    for k in range(target.shape[1]):
        target[place, k] = scale * source[row, k]


@njit(cache=True, nogil=True, fastmath=True)
def _sum_rows(rows: Floats, count: int, total: Floats) -> None:
    for row in range(count):
        for k in range(len(total)):
            total[k] += rows[row, k]
