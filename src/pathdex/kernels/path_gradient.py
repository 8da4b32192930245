"""The gradient of the structure loss of a tile of samples, from the softmax of each row (`path_loss.py`).

A row's gradient is a list of entries (node, part): exact for its targets, then drawn for other nodes. All lists of a
layer are made first, so that the rows of many samples are drawn from side by side.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pathdex.kernels.draw_lanes import draw_lanes, first_bit
from pathdex.kernels.gemm import LANES
from pathdex.kernels.sparse import row_gradient
from pathdex.kernels.types import Floats, Ints

_ZERO = np.float32(0.0)


@njit(cache=True, nogil=True)
def sampled_gradient(
    shares: Floats,
    rows: Ints,
    owners: Ints,
    paths: Ints,
    layer: int,
    each: Floats,
    offsets: Floats,
    draws: int,
    hidden: Floats,
    outputs: Floats,
    sums: Floats,
    nodes_gradient: Floats,
    outputs_gradient: Floats,
    bias_gradient: Floats,
) -> None:
    """The gradient of one layer, from the softmax `shares` (row, K) and the responsibilities `each` (n, J).

    Rows (n, J) are those of `prefix_rows`, owners (row,) the place i * J + j of each row's first path. Sets the
    targets' shares to 0.
    """
    count, most = len(owners), paths.shape[1] + draws + 1
    columns, parts = np.empty((count, most), np.int64), np.empty((count, most), np.float32)
    ends = np.arange(count) * most
    weights = target_entries(shares, rows, paths, layer, each, columns.reshape(-1), parts.reshape(-1), ends)
    drawn_entries(shares, rows, weights, offsets, draws, columns.reshape(-1), parts.reshape(-1), ends)
    (size, depth), width, num_nodes = paths.shape[1:], hidden.shape[1], nodes_gradient.shape[1]
    by_row, by_node, targets = sums.reshape(-1, width), nodes_gradient.reshape(-1, width), np.empty(depth, np.int64)
    for row in range(count):
        i, j = owners[row] // size, owners[row] % size
        for one in range(layer):
            targets[one] = pair(one, layer) * num_nodes + paths[i, j, one]
        number, own_columns, own_parts = ends[row] - row * most, columns[row], parts[row]
        for one in range(number):
            bias_gradient[own_columns[one]] += own_parts[one]
        entries = own_parts, own_columns, number
        place = i * depth + layer
        row_gradient(*entries, hidden, row, outputs_gradient, outputs, targets, layer, by_node, by_row, place, j)


@njit(cache=True, nogil=True, inline="always")
def pair(before: int, layer: int) -> int:
    """The table of what a node of layer `before` adds to `layer`."""
    return layer * (layer - 1) // 2 + before


@njit(cache=True, nogil=True, inline="always")
def target_entries(
    shares: Floats, rows: Ints, paths: Ints, layer: int, each: Floats, columns: Ints, parts: Floats, ends: Ints
) -> Floats:
    """Append the entries of the targets and set their shares to 0; returns the responsibility of each row.

    A row's entries end before ends[row] in `columns` and `parts`.
    """
    weights = np.zeros(len(ends), np.float32)
    for i in range(len(paths)):
        for j in range(paths.shape[1]):
            weights[rows[i, j]] += each[i, j]
        for j in range(paths.shape[1]):
            row, node = rows[i, j], paths[i, j, layer]
            end = ends[row]
            columns[end], parts[end] = node, weights[row] * shares[row, node] - each[i, j]
            shares[row, node], ends[row] = _ZERO, end + 1
    return weights


@njit(cache=True, nogil=True, inline="always")
def drawn_entries(
    shares: Floats, rows: Ints, weights: Floats, offsets: Floats, draws: int, columns: Ints, parts: Floats, ends: Ints
) -> None:
    """Append the entries of drawn nodes, `draws` per sample with one line through the sample's rows.

    A lane draws for one sample. Lanes without a row have weight 0, which draws nothing.
    """
    scale, samples, num_columns = np.float32(draws), len(offsets), shares.shape[1]
    counts, masks = np.empty((num_columns, LANES), np.float32), np.empty(num_columns, np.int64)
    lines, scales, chosen = np.empty((2, LANES), np.float32), np.empty(LANES, np.float32), np.empty(LANES, np.int64)
    for first in range(0, samples, LANES):
        for lane in range(LANES):
            lines[0, lane] = _ZERO
            lines[1, lane] = offsets[first + lane] if first + lane < samples else _ZERO
        for number in range(rows.shape[1]):
            some = False
            for lane in range(LANES):
                i = first + lane
                row = rows[i, 0] + number if i < samples else len(weights)
                inside = row < (rows[i + 1, 0] if i + 1 < samples else len(weights))
                chosen[lane] = row if inside else 0
                scales[lane] = scale * weights[row] if inside else _ZERO
                some |= inside
            if not some:
                break
            draw_lanes(shares, chosen, scales, lines, scale, counts, masks)
            for column in range(num_columns):
                left = masks[column]
                while left != 0:
                    lane = first_bit(left)
                    left &= left - 1
                    end = ends[chosen[lane]]
                    columns[end], parts[end] = column, counts[column, lane]
                    ends[chosen[lane]] = end + 1
