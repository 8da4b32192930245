"""Beam search down the tree: each level keeps the best nodes and scores only their children."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.model.network import pad_histories
from pathdex.recommenders.tree.network import Histories, TreeNetwork
from pathdex.recommenders.tree.tree import NO_ITEM, Tree
from pathdex.retrieval.filters import Filters
from pathdex.retrieval.ranking import Ranking, incomplete_rows, replace_rows, top_n_of


class Leaves(NamedTuple):
    """Result of a search."""

    items: NDArray[np.int64]
    """(query, leaf), `NO_ITEM` for none."""
    scores: NDArray[np.float32]
    """(query, leaf), -inf for `NO_ITEM`."""


def search(network: TreeNetwork, histories: Ragged, n: int, filters: Filters, beam: int) -> Ranking:
    """The best n eligible leaves that a beam finds.

    Filters apply to the leaves that the beam finds. If too few are left, the search repeats with a beam of at least n
    over nodes with an eligible item below them. This cannot miss any, since a level keeps either all such nodes or at
    least n of them.
    """
    num_items = network.tree.num_items
    ranking = _ranked(beam_search(network, histories, beam), num_items, n, filters)
    rows = incomplete_rows(ranking, filters, num_items)
    if not len(rows):
        return ranking
    kept = filters.take(rows)
    eligible = np.stack([kept.eligible(row, num_items) for row in range(len(rows))])
    found = beam_search(network, histories.take(rows), max(beam, n), eligible)
    return replace_rows(ranking, rows, _ranked(found, num_items, n, kept))


@torch.no_grad()
def beam_search(
    network: TreeNetwork, histories: Ragged, beam: int, eligible: NDArray[np.bool_] | None = None
) -> Leaves:
    """The leaves under the best `beam` nodes of the level above, found level by level from the first scored level.

    With `eligible` (query, item), nodes without an eligible item below them are skipped.
    """
    network.model.eval()
    tree, length = network.tree, network.settings.history_length
    items, last = pad_histories(histories.last(length), length)
    encoded = Histories(network, items, np.arange(len(items)), last)
    first = network.first_level
    nodes = np.broadcast_to(np.arange(tree.size(first)), (len(items), tree.size(first)))
    for level in range(first, tree.depth):
        scores = encoded.logits(level, nodes)
        if eligible is not None:
            scores[~_has_eligible(tree, level, nodes, eligible)] = -np.inf
        kept = np.sort(np.argsort(-scores, axis=1, kind="stable")[:, :beam], axis=1)
        nodes = tree.children(level, np.take_along_axis(nodes, kept, axis=1))
    if eligible is not None:
        there = np.take_along_axis(eligible, np.maximum(nodes, 0), axis=1)
        nodes = np.where(there, nodes, NO_ITEM)
    return Leaves(nodes, encoded.logits(tree.depth, nodes))


def _has_eligible(tree: Tree, level: int, nodes: NDArray[np.int64], eligible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether there is an eligible item under each node (query, node)."""
    under = np.logical_or.reduceat(eligible[:, tree.order], tree.starts(level)[:-1], axis=1)
    return np.take_along_axis(under, nodes, axis=1)


def _ranked(found: Leaves, num_items: int, n: int, filters: Filters) -> Ranking:
    there = found.items != NO_ITEM
    offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
    candidates = Ragged(found.items[there].astype(np.int32), offsets)
    return top_n_of(candidates, found.scores[there], num_items, n, filters)
