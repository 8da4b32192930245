"""s[v, c] = sum_i p(c | x_i) over an item's samples, by one beam per item: compiled.

A sample that gives a prefix less than half of the prefix's mean mass is skipped below it: it hardly changes the
order of the paths that matter, and most samples are of that kind. A prefix has at least the mass of each of its
continuations, and prefixes come best first, so once enough continuations weigh more than the next prefix, the rest is
left out; that changes nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from pathdex.index.checks import Codes
from pathdex.kernels.arithmetic import Floats
from pathdex.kernels.structure_layers import LayerWeights, hidden_units, largest, node_probabilities
from pathdex.kernels.topk import kth_largest

NEGLIGIBLE = 0.5
TOGETHER = 48
"""Prefixes and samples whose layer is computed at once, at least where there are so many."""


def score_item_paths(
    sums: Floats, weights: LayerWeights, beam_size: int, keep: int, paths: Codes, negligible: float = NEGLIGIBLE
) -> tuple[Codes, Floats, Floats]:
    """The paths with the largest s[v, c] that a beam finds: codes and scores (item, path), best first, -1 behind.

    The third array holds s[v, c] of each item's own `paths` (item, path, layer), given as nodes. A sample is left out
    below a prefix to which it gives less than `negligible` times the mean over the samples.
    `sums` (item, sample, layer, hidden) holds W_x x + b of each sample of each item; all items have equally many.
    """
    codes = np.full((len(sums), keep), -1, np.int64)
    scores, own = np.zeros((len(sums), keep), np.float32), np.zeros(paths.shape[:2], np.float32)
    _score_items(sums, weights, beam_size, keep, np.float32(negligible), paths, codes, scores, own)
    return codes, scores, own


@njit(cache=True, nogil=True, parallel=True)
def _score_items(
    sums: Floats,
    weights: LayerWeights,
    beam_size: int,
    keep: int,
    negligible: np.float32,
    paths: Codes,
    codes: Codes,
    scores: Floats,
    own: Floats,
) -> None:
    for item in prange(len(sums)):
        _score_best(sums[item], weights, beam_size, keep, negligible, codes[item], scores[item])
        _score_given(sums[item], weights, paths[item], codes[item], scores[item], own[item])


@njit(cache=True, nogil=True)
def _score_best(
    sums: Floats,
    weights: LayerWeights,
    beam_size: int,
    keep: int,
    negligible: np.float32,
    codes: Codes,
    scores: Floats,
) -> None:
    samples, depth, width = sums.shape
    num_nodes = weights.num_nodes
    hidden = np.empty((TOGETHER + samples, width), np.float32)
    padded = weights.bias.shape[1]
    share = np.empty((beam_size * samples, padded), np.float32)  # p(node | prefix, x_i)
    offset, row_of = np.empty(width, np.float32), np.empty((beam_size, samples), np.int64)
    total, scratch = np.empty((beam_size, padded), np.float32), np.empty(beam_size * padded, np.float32)
    chosen, mass = np.empty(beam_size * padded, np.int64), np.empty(beam_size, np.float32)
    prefix, old_prefix = np.zeros((2, beam_size, depth), np.int64)
    weight, old_weight = np.ones((2, beam_size, samples), np.float32)  # p(prefix | x_i)
    beam, mass[0] = 1, samples
    for layer in range(depth):
        total[:beam] = 0.0
        flat = total.ravel()
        last = layer + 1 == depth
        wanted = keep if last else beam_size
        outputs, bias = weights.outputs[layer], weights.bias[layer]
        cut, done, looked, rows = np.float32(0.0), 0, 0, 0
        while done < beam and mass[done] > cut:
            first, first_row = done, rows
            while done < beam and rows - first_row < TOGETHER:
                _sum_nodes(weights.nodes, prefix, done, layer, offset)
                floor = negligible * mass[done] / samples
                for i in range(samples):
                    row_of[done, i] = -1
                    if weight[done, i] > floor:
                        row_of[done, i] = rows
                        hidden_units(sums, i, layer, offset, hidden, rows - first_row)
                        rows += 1
                done += 1
            node_probabilities(hidden, rows - first_row, outputs, bias, share[first_row:rows])
            for b in range(first, done):
                for i in range(samples):
                    if row_of[b, i] >= 0:
                        _add_scaled(share, row_of[b, i], weight[b, i], total, b)
                for k in range(num_nodes, padded):
                    total[b, k] = 0.0
            if done < beam and done >= 2 * looked and done * num_nodes >= wanted:
                for k in range(done * padded):
                    scratch[k] = flat[k]
                cut, looked = kth_largest(scratch, done * padded, wanted), done
        found = largest(flat, beam * padded, wanted, cut, scratch, chosen)
        if last:
            for rank in range(found):
                b, node = chosen[rank] // padded, chosen[rank] % padded
                codes[rank] = _code(prefix[b], layer, num_nodes) * num_nodes + node
                scores[rank] = flat[chosen[rank]]
            return
        prefix, old_prefix, weight, old_weight = old_prefix, prefix, old_weight, weight
        for rank in range(found):
            b, node = chosen[rank] // padded, chosen[rank] % padded
            for before in range(layer):
                prefix[rank, before] = old_prefix[b, before]
            prefix[rank, layer] = node
            mass[rank] = flat[chosen[rank]]
            for i in range(samples):
                row = row_of[b, i]
                weight[rank, i] = old_weight[b, i] * share[row, node] if row >= 0 else np.float32(0.0)
        beam = found


@njit(cache=True, nogil=True)
def _score_given(
    sums: Floats, weights: LayerWeights, paths: Codes, codes: Codes, found: Floats, scores: Floats
) -> None:
    """Of the paths that are among the `codes` already, the scores are taken from `found`."""
    samples, depth, width = sums.shape
    hidden, share = np.empty((samples, width), np.float32), np.empty((samples, weights.bias.shape[1]), np.float32)
    offset, mass = np.empty(width, np.float32), np.empty(samples, np.float32)
    for j in range(len(paths)):
        code, known = _code(paths[j], depth, weights.num_nodes), False
        for rank in range(len(codes)):
            if codes[rank] == code:
                scores[j], known = found[rank], True
        if known:
            continue
        mass[:] = 1.0
        for layer in range(depth):
            _sum_nodes(weights.nodes, paths, j, layer, offset)
            for i in range(samples):
                hidden_units(sums, i, layer, offset, hidden, i)
            node_probabilities(hidden, samples, weights.outputs[layer], weights.bias[layer], share)
            mass *= share[:, paths[j, layer]]
        scores[j] = mass.sum()


@njit(cache=True, nogil=True)
def _sum_nodes(nodes: Floats, prefixes: Codes, row: int, layer: int, offset: Floats) -> None:
    """What the nodes of a prefix before `layer` add to its sums."""
    offset[:] = 0.0
    for before in range(layer):
        node = prefixes[row, before]
        for h in range(len(offset)):
            offset[h] += nodes[before, node, layer, h]


@njit(cache=True, nogil=True, fastmath=True)
def _add_scaled(values: Floats, row: int, scale: np.float32, total: Floats, place: int) -> None:
    """total[place] += scale values[row]; rows are named and not cut out, since a view costs more than the sum."""
    for k in range(total.shape[1]):
        total[place, k] += scale * values[row, k]


@njit(cache=True, nogil=True)
def _code(nodes: Codes, depth: int, num_nodes: int) -> int:
    code = 0
    for layer in range(depth):
        code = code * num_nodes + nodes[layer]
    return code
