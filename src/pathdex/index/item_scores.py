"""s[v, c] = sum_i p(c | x_i) over an item's samples, by one beam per item: compiled.

A sample that gives a prefix less than a twentieth of the prefix's mean mass is skipped below it: it hardly changes the
order of the paths that matter, and most samples are of that kind. A prefix has at least the mass of each of its
continuations, and prefixes come best first, so once enough continuations weigh more than the next prefix, the rest is
left out; that changes nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from pathdex.index.arithmetic import Floats, kth_largest
from pathdex.index.checks import Codes
from pathdex.index.layers import LayerWeights, largest, node_probabilities

NEGLIGIBLE = np.float32(0.05)


def score_item_paths(sums: Floats, weights: LayerWeights, beam_size: int, keep: int) -> tuple[Codes, Floats]:
    """The paths with the largest s[v, c] that a beam finds: codes and scores (item, path), best first, -1 behind.

    `sums` (item, sample, layer, hidden) holds W_x x + b of each sample of each item; all items have equally many.
    """
    codes = np.full((len(sums), keep), -1, np.int64)
    scores = np.zeros((len(sums), keep), np.float32)
    _score_items(sums, weights.nodes, weights.outputs, weights.bias, weights.num_nodes, beam_size, keep, codes, scores)
    return codes, scores


@njit(cache=True, nogil=True, parallel=True)
def _score_items(
    sums: Floats,
    nodes: Floats,
    outputs: Floats,
    bias: Floats,
    num_nodes: int,
    beam_size: int,
    keep: int,
    codes: Codes,
    scores: Floats,
) -> None:
    for item in prange(len(sums)):
        _score_item(sums[item], nodes, outputs, bias, num_nodes, beam_size, keep, codes[item], scores[item])


@njit(cache=True, nogil=True)
def _score_item(
    sums: Floats,
    nodes: Floats,
    outputs: Floats,
    bias: Floats,
    num_nodes: int,
    beam_size: int,
    keep: int,
    codes: Codes,
    scores: Floats,
) -> None:
    samples, depth, width = sums.shape
    padded = bias.shape[1]
    active, hidden = np.empty(width, np.int32), np.empty(width, np.float32)
    bits, result, offset = np.empty(padded, np.int32), np.empty(padded, np.float32), np.empty(width, np.float32)
    share = np.zeros((beam_size, samples, num_nodes), np.float32)  # p(prefix, node | x_i)
    total, scratch = np.empty(beam_size * num_nodes, np.float32), np.empty(beam_size * num_nodes, np.float32)
    chosen = np.empty(max(beam_size, keep), np.int64)
    path, old_path = np.zeros((beam_size, depth), np.int64), np.zeros((beam_size, depth), np.int64)
    weight = np.ones((beam_size, samples), np.float32)  # p(prefix | x_i)
    beam = 1
    for layer in range(depth):
        count = beam * num_nodes
        total[:count] = 0.0
        last = layer + 1 == depth
        wanted = min(keep if last else beam_size, count)
        cut, looked = np.float32(0.0), 0
        for b in range(beam):
            if b >= 2 * looked and b * num_nodes >= wanted:
                scratch[: b * num_nodes] = total[: b * num_nodes]
                cut, looked = kth_largest(scratch, b * num_nodes, wanted), b
            if weight[b].sum() <= cut:
                break
            offset[:] = 0.0
            for before in range(layer):
                offset += nodes[before, path[b, before], layer]
            floor = NEGLIGIBLE * weight[b].sum() / samples
            for i in range(samples):
                if weight[b, i] <= floor:
                    share[b, i] = 0.0
                    continue
                node_probabilities(
                    sums[i, layer], offset, outputs[layer], bias[layer], num_nodes, active, hidden, bits, result
                )
                for k in range(num_nodes):
                    mass = weight[b, i] * result[k]
                    share[b, i, k] = mass
                    total[b * num_nodes + k] += mass
        found = largest(total, count, wanted, scratch, chosen)
        if last:
            for rank in range(found):
                b, node = chosen[rank] // num_nodes, chosen[rank] % num_nodes
                code = 0
                for before in range(layer):
                    code = code * num_nodes + path[b, before]
                codes[rank] = code * num_nodes + node
                scores[rank] = total[chosen[rank]]
            return
        old_path[:] = path
        for rank in range(found):
            b, node = chosen[rank] // num_nodes, chosen[rank] % num_nodes
            path[rank] = old_path[b]
            path[rank, layer] = node
            for i in range(samples):
                weight[rank, i] = share[b, i, node]
        beam = found
