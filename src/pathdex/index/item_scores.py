"""The scores s[v, c] = sum_i p(c | x_i) over an item's samples, by one compiled beam search per item.

A sample that gives a prefix less than half of the prefix's mean mass is skipped below it: it hardly changes the order
of the paths that matter, and most samples are of that kind. A prefix has at least the mass of each of its continuations
and prefixes come best first, so once enough continuations outweigh the next prefix, the rest is skipped; that does not
change the result.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from pathdex.kernels.structure import StructureWeights, layer_probabilities
from pathdex.kernels.threads import run_ranges
from pathdex.kernels.topk import kth_largest, select_top_k
from pathdex.kernels.types import Floats, Ints

NEGLIGIBLE = 0.5
BATCH_ROWS = 48
"""Pairs of prefix and sample whose layer is computed at once, at least."""


def score_item_paths(
    sums: Floats,
    weights: StructureWeights,
    beam: int,
    candidate_paths: int,
    own_paths: Ints,
    negligible: float = NEGLIGIBLE,
) -> tuple[Ints, Floats, Floats]:
    """The paths with the largest s[v, c] that a beam finds: codes and scores (item, path), best first, padded with -1.

    The third array holds s[v, c] of each item's `own_paths` (item, path, layer), given as nodes. A sample is skipped
    below a prefix to which it gives less than `negligible` times the mean over the samples.
    `sums` (item, sample, layer, hidden) holds W_x x + b of each sample; all items have the same number of samples.
    """
    codes = np.full((len(sums), candidate_paths), -1, np.int64)
    scores, own_scores = np.zeros(codes.shape, np.float32), np.zeros(own_paths.shape[:2], np.float32)
    given = sums, weights, beam, np.float32(negligible), own_paths, codes, scores, own_scores
    run_ranges(partial(_score_items, *given), len(sums), least=1)
    return codes, scores, own_scores


@njit(cache=True, nogil=True)
def _score_items(
    sums: Floats,
    weights: StructureWeights,
    beam: int,
    negligible: np.float32,
    own_paths: Ints,
    codes: Ints,
    scores: Floats,
    own_scores: Floats,
    first: int,
    end: int,
) -> None:
    for item in range(first, end):
        _score_best(sums[item], weights, beam, negligible, codes[item], scores[item])
        _score_own(sums[item], weights, own_paths[item], codes[item], scores[item], own_scores[item])


@njit(cache=True, nogil=True, inline="always")
def _score_best(
    sums: Floats, weights: StructureWeights, beam: int, negligible: np.float32, codes: Ints, scores: Floats
) -> None:
    """Fill `codes` and `scores` with the best paths of one item."""
    samples, depth, hidden = sums.shape
    num_nodes, padded = weights.num_nodes, weights.bias.shape[1]
    inputs = np.empty((BATCH_ROWS + samples, hidden), np.float32)
    share = np.empty((beam * samples, padded), np.float32)  # p(node | prefix, x_i)
    offset, row_of = np.empty(hidden, np.float32), np.empty((beam, samples), np.int64)
    total, scratch = np.empty((beam, padded), np.float32), np.empty(beam * padded, np.float32)
    chosen, mass = np.empty(beam * padded, np.int64), np.empty(beam, np.float32)
    prefix, old_prefix = np.zeros((2, beam, depth), np.int64)
    weight, old_weight = np.ones((2, beam, samples), np.float32)  # p(prefix | x_i)
    prefixes, mass[0] = 1, samples
    for layer in range(depth):
        for b in range(prefixes):
            for k in range(padded):
                total[b, k] = 0.0
        flat = total.ravel()
        last = layer + 1 == depth
        wanted = len(codes) if last else beam
        threshold, done, checked, rows = np.float32(0.0), 0, 0, 0
        while done < prefixes and mass[done] > threshold:
            first, first_row = done, rows
            while done < prefixes and rows - first_row < BATCH_ROWS:
                _sum_nodes(weights.nodes, prefix, done, layer, offset)
                floor = negligible * mass[done] / samples
                for i in range(samples):
                    row_of[done, i] = -1
                    if weight[done, i] > floor:
                        row_of[done, i] = rows
                        _add_offset(sums, i, layer, offset, inputs, rows - first_row)
                        rows += 1
                done += 1
            layer_probabilities(weights, layer, inputs, rows - first_row, share[first_row:rows])
            for b in range(first, done):
                for i in range(samples):
                    if row_of[b, i] >= 0:
                        _add_scaled(share, row_of[b, i], weight[b, i], total, b)
                for k in range(num_nodes, padded):
                    total[b, k] = 0.0
            if done < prefixes and done >= 2 * checked and done * num_nodes >= wanted:
                for k in range(done * padded):
                    scratch[k] = flat[k]
                threshold, checked = kth_largest(scratch, done * padded, wanted), done
        found = select_top_k(flat, prefixes * padded, wanted, threshold, scratch, chosen)
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
        prefixes = found


@njit(cache=True, nogil=True, inline="always")
def _score_own(
    sums: Floats, weights: StructureWeights, own_paths: Ints, codes: Ints, scores: Floats, own_scores: Floats
) -> None:
    """Score an item's own paths; those among `codes` keep the score found there."""
    samples, depth, hidden = sums.shape
    inputs, share = np.empty((samples, hidden), np.float32), np.empty((samples, weights.bias.shape[1]), np.float32)
    offset, mass = np.empty(hidden, np.float32), np.empty(samples, np.float32)
    for j in range(len(own_paths)):
        code, known = _code(own_paths[j], depth, weights.num_nodes), False
        for rank in range(len(codes)):
            if codes[rank] == code:
                own_scores[j], known = scores[rank], True
        if known:
            continue
        for i in range(samples):
            mass[i] = 1.0
        for layer in range(depth):
            _sum_nodes(weights.nodes, own_paths, j, layer, offset)
            for i in range(samples):
                _add_offset(sums, i, layer, offset, inputs, i)
            layer_probabilities(weights, layer, inputs, samples, share)
            for i in range(samples):
                mass[i] *= share[i, own_paths[j, layer]]
        own_scores[j] = mass.sum()


@njit(cache=True, nogil=True)
def _sum_nodes(nodes: Floats, prefixes: Ints, row: int, layer: int, offset: Floats) -> None:
    """What the nodes of a prefix before `layer` add to the layer's sums."""
    for h in range(len(offset)):
        offset[h] = 0.0
    first = layer * len(offset)
    for before in range(layer):
        node = prefixes[row, before]
        for h in range(len(offset)):
            offset[h] += nodes[before, node, first + h]


@njit(cache=True, nogil=True, fastmath=True)
def _add_offset(sums: Floats, sample: int, layer: int, offset: Floats, inputs: Floats, row: int) -> None:
    """inputs[row] = sums[sample, layer] + offset."""
    for h in range(len(offset)):
        inputs[row, h] = sums[sample, layer, h] + offset[h]


@njit(cache=True, nogil=True, fastmath=True)
def _add_scaled(values: Floats, row: int, scale: np.float32, total: Floats, target: int) -> None:
    """total[target] += scale values[row]; rows are passed as numbers, since a view costs more than the sum."""
    for k in range(total.shape[1]):
        total[target, k] += scale * values[row, k]


@njit(cache=True, nogil=True)
def _code(nodes: Ints, depth: int, num_nodes: int) -> int:
    code = 0
    for layer in range(depth):
        code = code * num_nodes + nodes[layer]
    return code
