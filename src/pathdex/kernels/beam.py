"""Beam search over the trie of paths in use: Algorithm 1, one user at a time.

A node of the trie is a prefix of a path in use. They are numbered level by level from the root, 0, each level in the
order of its codes, so that the children of a node have consecutive numbers and the last ones are the paths themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.arithmetic import Floats
from pathdex.kernels.layout import frozen
from pathdex.kernels.structure import TOGETHER, StructureWeights, advance, begin, new_scratch, score_nodes
from pathdex.kernels.topk import kth_largest

Places = NDArray[np.int64]

ROOM = 8
"""Beams' worth of prefixes that are gathered before the best are selected: selecting after every parent costs more than
its layer."""


BLOCK = 1024
"""Paths that are scored together, so that the states of their prefixes stay small."""


class Trie(NamedTuple):
    """The prefixes of the paths in use."""

    first_child: NDArray[np.int32]
    """The children of node i are `first_child[i]` up to `first_child[i + 1]`; for all nodes but the paths."""
    label: NDArray[np.int32]
    """The last node, of K, of each prefix."""
    levels: Places
    """The first number of each level, and behind them the number of nodes in all."""

    @classmethod
    def pack(cls, prefixes: Sequence[Places], children: Sequence[Places], num_nodes: int) -> Trie:
        """From the prefixes of each length and the children of each prefix, as `Postings` holds them."""
        sizes = [len(codes) for codes in prefixes]
        levels = np.concatenate([[0], np.cumsum(sizes)])
        first = [ends[:-1] + levels[depth + 1] for depth, ends in enumerate(children)]
        labels = [codes % num_nodes for codes in prefixes]
        return cls(
            frozen(np.concatenate([*first, levels[-1:]]), np.int32),
            frozen(np.concatenate(labels), np.int32),
            frozen(levels, np.int64),
        )


@njit(cache=True, nogil=True)
def beam_search(weights: StructureWeights, trie: Trie, user: Floats, width: int, depth: int) -> tuple[Places, Floats]:
    """The `width` most probable prefixes of `depth` nodes that a beam of that width finds, best first.

    Implements Algorithm 1 over the paths in use. Returns their numbers on their level and log p(c | x). A prefix is at
    most as probable as its parent, so once `width` prefixes are more probable than the next parent, it and all after it
    are skipped: this changes nothing and saves most of the layers' arithmetic where p is peaked.
    """
    scratch = new_scratch(weights)
    most = ROOM * width
    room = most + weights.num_nodes
    score, spare = np.empty(room, np.float32), np.empty(room, np.float32)
    child, parent = np.empty(room, np.int64), np.empty(room, np.int64)
    state = begin(weights, user).reshape(1, -1)
    total, node = np.zeros(1, np.float32), np.zeros(1, np.int64)
    for layer in range(depth):
        size, cut = 0, np.float32(-np.inf)
        for b in range(len(node)):
            if total[b] <= cut:
                break
            row = b % TOGETHER
            if row == 0:
                score_nodes(weights, state[b : b + TOGETHER], layer, scratch)
            base, logits = total[b] - scratch.norms[row], scratch.logits[row]
            for c in range(trie.first_child[node[b]], trie.first_child[node[b] + 1]):
                value = base + logits[trie.label[c]]
                if value > cut:
                    score[size], child[size], parent[size] = value, c, b
                    size += 1
            if size > most:
                cut = _keep_best(score, child, parent, spare, size, width)
                size = width
        if size > width:
            _keep_best(score, child, parent, spare, size, width)
            size = width
        order = np.argsort(-score[:size], kind="mergesort")
        total, node = score[:size][order], child[:size][order]
        if layer + 1 < depth:
            after = np.empty((size, state.shape[1]), np.float32)
            advance(weights, state, parent[:size][order], layer, trie.label[node], scratch, after)
            state = after
    return node - trie.levels[depth], total


@njit(cache=True, nogil=True)
def _keep_best(score: Floats, child: Places, parent: Places, spare: Floats, size: int, width: int) -> np.float32:
    """Move the `width` best of `size` to the front, in their order, and return the worst score kept."""
    spare[:size] = score[:size]
    cut = kth_largest(spare, size, width)
    above = 0
    for i in range(size):
        above += score[i] > cut
    kept, equal = 0, width - above
    for i in range(size):
        if score[i] > cut or (score[i] == cut and equal > 0):
            equal -= score[i] == cut
            score[kept], child[kept], parent[kept] = score[i], child[i], parent[i]
            kept += 1
    return cut


@njit(cache=True, nogil=True)
def layer_log_probabilities(weights: StructureWeights, user: Floats, nodes: Places) -> Floats:
    """log p(c_d | x, c_1..c_{d-1}) of paths (path, layer).

    Paths in the order of their codes share the work on common prefixes.
    """
    result = np.empty(nodes.shape, np.float32)
    start = begin(weights, user).reshape(1, -1)
    for first in range(0, len(nodes), BLOCK):
        _score_block(weights, start, nodes[first : first + BLOCK], result[first : first + BLOCK])
    return result


@njit(cache=True, nogil=True)
def _score_block(weights: StructureWeights, states: Floats, nodes: Places, result: Floats) -> None:
    """Layer by layer: the state of every distinct prefix once, and several at a time."""
    scratch = new_scratch(weights)
    count, depth = nodes.shape
    prefix_of, parents, chosen = np.zeros(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    for layer in range(depth):
        path = 0
        for first in range(0, len(states), TOGETHER):
            score_nodes(weights, states[first : first + TOGETHER], layer, scratch)
            while path < count and prefix_of[path] < first + TOGETHER:
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
