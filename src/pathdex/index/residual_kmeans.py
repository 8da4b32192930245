"""Residual k-means: a vector as a sum of D centroids, one from each layer's codebook of K.

Layer 1 clusters the vectors, layer 2 their residuals, and so on, so that vectors which share a prefix of nodes are near
each other.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from pathdex.kernels.threads import run_ranges
from pathdex.kernels.types import Floats, Ints

SAMPLE_PER_NODE = 256
"""Vectors per centroid in the training sample; more of them do not improve the centroids."""
_CHUNK = 16_384
_PER_RANGE = 256


def fit_codebooks(vectors: Floats, num_nodes: int, depth: int, iterations: int, random: np.random.Generator) -> Floats:
    """Centroids (layer, node, dim), fitted greedily on a sample of the vectors."""
    return fit_sample(vectors[draw_sample(len(vectors), num_nodes, random)], num_nodes, depth, iterations, random)


def draw_sample(num_vectors: int, num_nodes: int, random: np.random.Generator) -> Ints:
    """The vectors on which centroids are fitted."""
    drawn: Ints = random.choice(num_vectors, min(num_vectors, SAMPLE_PER_NODE * num_nodes), replace=False)
    return drawn


def fit_sample(residual: Floats, num_nodes: int, depth: int, iterations: int, random: np.random.Generator) -> Floats:
    """Centroids (layer, node, dim), fitted on these vectors."""
    codebooks = np.empty((depth, num_nodes, residual.shape[1]), np.float32)
    for layer in range(depth):
        codebooks[layer] = _kmeans(residual, num_nodes, iterations, random)
        residual = residual - codebooks[layer][nearest(residual, codebooks[layer])]
    return codebooks


def nearest(vectors: Floats, centroids: Floats) -> Ints:
    """The nearest centroid of each vector (vector,)."""
    half_squares = (centroids**2).sum(axis=1) / 2
    assigned = np.empty(len(vectors), np.int64)
    for start in range(0, len(vectors), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        assigned[chunk] = np.argmin(half_squares - vectors[chunk] @ centroids.T, axis=1)
    return assigned


def nearest_codes(vectors: Floats, codebooks: Floats, beam: int) -> Ints:
    """The `beam` nearest codes of each vector (vector, code) that beam search over the layers finds, nearest first.

    |x - sum_d e_d|^2 = |x|^2 + sum_d (|e_d|^2 - 2 x.e_d) + 2 sum_{l<d} e_l.e_d: apart from x.e_d this needs only
    products of centroids, which are the same for every vector.
    """
    depth, num_nodes, _ = codebooks.shape
    between = np.ascontiguousarray(2 * np.einsum("lad,mbd->lmab", codebooks, codebooks, optimize=True))
    squares = (codebooks**2).sum(axis=2)
    codes = np.empty((len(vectors), min(beam, num_nodes**depth)), np.int64)
    for start in range(0, len(vectors), _CHUNK):
        chunk = vectors[start : start + _CHUNK]
        own = squares - 2 * np.einsum("vd,lad->vla", chunk, codebooks, optimize=True)
        given = np.ascontiguousarray(own, np.float32), between, codes[start : start + _CHUNK]
        run_ranges(partial(_beam_search, *given), len(chunk), least=_PER_RANGE)
    return codes


def _kmeans(vectors: Floats, num_nodes: int, iterations: int, random: np.random.Generator) -> Floats:
    """Lloyd's algorithm, initialised with random vectors: they follow the density, which keeps clusters even."""
    centroids = vectors[random.choice(len(vectors), num_nodes, replace=len(vectors) < num_nodes)]
    for _ in range(iterations):
        assigned = nearest(vectors, centroids)
        sizes = np.bincount(assigned, minlength=num_nodes)
        order = np.argsort(assigned, kind="stable")
        present = np.flatnonzero(sizes)
        sums = np.add.reduceat(vectors[order], np.cumsum(sizes[present]) - sizes[present], axis=0, dtype=np.float64)
        centroids[present] = sums / sizes[present, None]
        empty = np.flatnonzero(sizes == 0)
        centroids[empty] = vectors[random.choice(len(vectors), len(empty))]
    return centroids


@njit(cache=True, nogil=True)
def _beam_search(own: Floats, between: Floats, codes: Ints, first: int, end: int) -> None:
    """Beam search for the vectors `first` .. `end` - 1, each of which fills a row of `codes`.

    The cost of a code is the sum of its entries of `own` (vector, layer, node) and `between` (layer, layer, node,
    node).
    """
    _, depth, num_nodes = own.shape
    beam = codes.shape[1]
    row, best, costs = np.empty((3, max(beam, num_nodes)), np.float32)
    parent, node = np.empty((2, beam), np.int64)
    nodes, extended = np.empty((2, beam, depth), np.int64)
    for v in range(first, end):
        kept, costs[0] = 1, 0.0
        for layer in range(depth):
            # The `beam` best of kept x num_nodes continuations, by insertion: they are few.
            continuations = min(beam, kept * num_nodes)
            for position in range(continuations):
                best[position], parent[position], node[position] = np.inf, 0, 0
            for b in range(kept):
                for k in range(num_nodes):
                    row[k] = costs[b] + own[v, layer, k]
                for before in range(layer):
                    passed = nodes[b, before]
                    for k in range(num_nodes):
                        row[k] += between[before, layer, passed, k]
                for k in range(num_nodes):
                    cost = row[k]
                    if cost < best[continuations - 1]:
                        position = continuations - 1
                        while position > 0 and best[position - 1] > cost:
                            left = position - 1
                            best[position], parent[position], node[position] = best[left], parent[left], node[left]
                            position = left
                        best[position], parent[position], node[position] = cost, b, k
            for position in range(continuations):
                for before in range(layer):
                    extended[position, before] = nodes[parent[position], before]
                extended[position, layer], costs[position] = node[position], best[position]
            nodes, extended, kept = extended, nodes, continuations
        for b in range(beam):
            codes[v, b] = 0
            for layer in range(depth):
                codes[v, b] = codes[v, b] * num_nodes + nodes[b, layer]
