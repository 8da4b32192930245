"""Beam search over the trie of paths in use: Algorithm 1, one user at a time.

A node of the trie is a prefix of a path in use. Nodes are numbered level by level from the root, 0, each level in the
order of its codes, so that the children of a node are consecutive and the last level holds the paths themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pathdex.kernels.layout import as_readonly
from pathdex.kernels.prefetch import prefetch_lines
from pathdex.kernels.select import find_sums_above, new_keys, order_keys, score_of, select_first, top_k_in_order
from pathdex.kernels.structure import STATES, StructureWeights, advance, begin, new_scratch, score_nodes
from pathdex.kernels.types import Floats, Int32s, Ints

BUFFER_BEAMS = 3
"""Prefixes that are collected before the best are selected, in beams."""
LABEL_LINES = 2
"""Cache lines of the labels of a prefix's children to prefetch."""
PATH_BLOCK = 1024
"""Paths that are scored together, so that the states of their prefixes fit the cache."""


class Trie(NamedTuple):
    """The prefixes of the paths in use."""

    first_child: Int32s
    """The children of node i are `first_child[i]` .. `first_child[i + 1] - 1`; for all nodes except the paths."""
    label: Int32s
    """The last of each prefix's nodes, 0 .. K - 1."""
    levels: Ints
    """The number of the first node of each level, then the number of all nodes."""

    @classmethod
    def pack(cls, prefixes: Sequence[Ints], children: Sequence[Ints], num_nodes: int) -> Trie:
        """Pack the prefixes of each length and the children of each prefix, as `Postings` holds them."""
        sizes = [len(codes) for codes in prefixes]
        levels = np.concatenate([[0], np.cumsum(sizes)])
        first = [ends[:-1] + levels[depth + 1] for depth, ends in enumerate(children)]
        labels = [codes % num_nodes for codes in prefixes]
        return cls(
            as_readonly(np.concatenate([*first, levels[-1:]]), np.int32),
            as_readonly(np.concatenate(labels), np.int32),
            as_readonly(levels, np.int64),
        )


@njit(cache=True, nogil=True)
def beam_search(weights: StructureWeights, trie: Trie, user: Floats, beam: int, depth: int) -> tuple[Ints, Floats]:
    """The `beam` most probable prefixes of `depth` nodes that beam search finds, best first.

    Implements Algorithm 1 over the paths in use. Returns their positions on their level and log p(c | x). A prefix is
    at most as probable as its parent, so once `beam` prefixes are more probable than the next parent, that parent and
    all after it are skipped. This does not change the result and saves most of the arithmetic where p is peaked.
    """
    scratch = new_scratch(weights)
    full = BUFFER_BEAMS * beam
    found = _new_found(full + weights.num_nodes, weights.bias.shape[1])
    state = begin(weights, user).reshape(1, -1)
    total, node = np.zeros(1, np.float32), np.zeros(1, np.int32)
    for layer in range(depth):
        size: Any = np.int64(0)  # A literal 0 has a type of its own, for which all would be compiled again.
        threshold = np.float32(-np.inf)
        for b in range(len(node)):
            if total[b] <= threshold:
                break
            row = b % STATES
            if row == 0:
                score_nodes(weights, state[b : b + STATES], layer, scratch)
            base = total[b] - scratch.norms[row]
            first, end = trie.first_child[node[b]], trie.first_child[node[b] + 1]
            size = _add_children(found, size, trie.label[first:end], first, base, scratch.logits[row], b, threshold)
            if size > full:
                threshold = _keep_best(found, size, beam)
                size = beam
        order = top_k_in_order(found.score, size, beam, found.keys)
        total, node = found.score[order], found.child[order]
        if layer + 1 < depth:
            for one in node:
                prefetch_lines(trie.first_child, one, 1)
            after = np.empty((len(order), state.shape[1]), np.float32)
            advance(weights, state, found.parent[order], layer, trie.label[node], scratch, after)
            state = after
            for one in node:
                prefetch_lines(trie.label, trie.first_child[one], LABEL_LINES)
    return node - trie.levels[depth], total


class _Found(NamedTuple):
    """The children found so far."""

    score: Floats
    child: Int32s
    parent: Int32s
    keys: Int32s
    """Scratch memory for the selection."""
    nodes: Ints
    """Scratch memory for the nodes of one parent."""


@njit(cache=True, nogil=True)
def _new_found(capacity: int, padded_nodes: int) -> _Found:
    return _Found(
        np.empty(capacity, np.float32),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int32),
        new_keys(capacity),
        np.empty(padded_nodes, np.int64),
    )


@njit(cache=True, nogil=True, inline="always")
def _add_children(
    found: _Found,
    size: int,
    labels: Int32s,
    first: int,
    base: np.float32,
    logits: Floats,
    parent: int,
    threshold: np.float32,
) -> int:
    """Add the children of a prefix whose score exceeds the threshold; returns the new size."""
    if 2 * len(labels) > len(logits) and threshold > -np.inf:
        # Most nodes are children, and few of them exceed the threshold: find these first.
        count = find_sums_above(logits, base, threshold, found.nodes)
        for j in range(count):
            label = found.nodes[j]
            i = min(label, len(labels) - 1)
            while i > 0 and labels[i] > label:
                i -= 1
            found.score[size], found.child[size], found.parent[size] = base + logits[label], first + i, parent
            size += labels[i] == label
        return size
    for i in range(len(labels)):
        # Written in any case and overwritten by the next: cheaper than a branch that cannot be predicted.
        value = base + logits[labels[i]]
        found.score[size], found.child[size], found.parent[size] = value, first + i, parent
        size += value > threshold
    return size


@njit(cache=True, nogil=True)
def _keep_best(found: _Found, size: int, beam: int) -> np.float32:
    """Move the best to the front, in their order. Returns a bound that scores must exceed to be among the best."""
    keys = order_keys(found.score, size, found.keys)
    positions = np.empty(size, np.int64)
    bound = select_first(keys, size, beam, positions)
    for i in range(beam):
        kept = positions[i]
        found.score[i], found.child[i], found.parent[i] = found.score[kept], found.child[kept], found.parent[kept]
    return score_of(bound)


@njit(cache=True, nogil=True)
def layer_log_probabilities(weights: StructureWeights, user: Floats, nodes: Ints) -> Floats:
    """log p(c_d | x, c_1..c_{d-1}) of paths (path, layer).

    Paths in the order of their codes share the work on common prefixes.
    """
    result = np.empty(nodes.shape, np.float32)
    start = begin(weights, user).reshape(1, -1)
    for first in range(0, len(nodes), PATH_BLOCK):
        _score_block(weights, start, nodes[first : first + PATH_BLOCK], result[first : first + PATH_BLOCK])
    return result


@njit(cache=True, nogil=True)
def _score_block(weights: StructureWeights, states: Floats, nodes: Ints, result: Floats) -> None:
    """Score layer by layer, the state of every distinct prefix once and several at a time."""
    scratch = new_scratch(weights)
    count, depth = nodes.shape
    prefix_of, parents, chosen = np.zeros(count, np.int64), np.empty(count, np.int32), np.empty(count, np.int32)
    for layer in range(depth):
        path = 0
        for first in range(0, len(states), STATES):
            score_nodes(weights, states[first : first + STATES], layer, scratch)
            while path < count and prefix_of[path] < first + STATES:
                row = prefix_of[path] - first
                result[path, layer] = scratch.logits[row, nodes[path, layer]] - scratch.norms[row]
                path += 1
        if layer + 1 == depth:
            return
        distinct, before = 0, -1
        for path in range(count):
            if path == 0 or prefix_of[path] != before or nodes[path, layer] != nodes[path - 1, layer]:
                parents[distinct], chosen[distinct] = prefix_of[path], nodes[path, layer]
                distinct += 1
            before, prefix_of[path] = prefix_of[path], distinct - 1
        after = np.empty((distinct, states.shape[1]), np.float32)
        advance(weights, states, parents[:distinct], layer, chosen[:distinct], scratch, after)
        states = after
