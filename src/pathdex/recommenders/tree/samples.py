"""The nodes that a step trains on: drawn from a level (TDM), or reached by a beam of the model (OTM)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.recommenders.tree.network import Histories, TreeNetwork
from pathdex.recommenders.tree.step import NodeSamples
from pathdex.recommenders.tree.tree import NO_ITEM, Tree
from pathdex.training.windows import Batch


def draw_levels(first: int, depth: int, count: int, random: np.random.Generator) -> list[int]:
    """`count` random levels from `first` on, and the leaves."""
    above = np.arange(first, depth)
    chosen = random.choice(above, min(count, len(above)), replace=False)
    return [*sorted(chosen.tolist()), depth]


def sampled_nodes(
    tree: Tree, level: int, targets: NDArray[np.int64], negatives: int, random: np.random.Generator
) -> NodeSamples:
    """TDM's layer-wise sampling: the target's ancestor against nodes drawn uniformly from the rest of its level."""
    own = tree.ancestors(level)[targets][:, None]
    others = random.integers(0, max(tree.size(level) - 1, 1), (len(targets), negatives))
    others += others >= own
    nodes = np.concatenate([own, others], axis=1)
    labels = np.zeros(nodes.shape, np.float32)
    labels[:, 0] = 1
    if tree.size(level) == 1:
        return NodeSamples(level, own, labels[:, :1])
    return NodeSamples(level, nodes, labels)


def following_items(sequences: Ragged, position: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The `count` items from each position on, (position, count); `NO_ITEM` past the end of the sequence."""
    ends = sequences.offsets[np.searchsorted(sequences.offsets, position, side="right")]
    places = position[:, None] + np.arange(count)
    items = sequences.values.take(places, mode="clip").astype(np.int64)
    return np.where(places < ends[:, None], items, NO_ITEM)


@torch.no_grad()
def beam_samples(
    network: TreeNetwork,
    batch: Batch,
    targets: NDArray[np.int64],
    levels: list[int],
    beam: int,
    negatives: int,
    random: np.random.Generator,
) -> list[NodeSamples]:
    """OTM's beam-aware samples (Zhuo et al. 2020): the nodes that a beam scores, with Bayes-optimal pseudo-targets.

    The target of a leaf is 1 for the items taken, `targets` (sample, item). The target of an inner node is that of the
    child that the model prefers, so it is 1 only if following the best children leads to such an item.

    Differs from the paper: nodes with target 1 are trained even if the beam has lost them, and so are `negatives` nodes
    drawn as in TDM, since a query's beam may be wider than the training beam. Drawn negatives alone teach the model
    log(p / q), where q is how often a node is a negative. A node in the beam is a negative every time, so the loss adds
    the log ratio of q to its logit: scores inside and outside the beam stay comparable, and continue those of TDM.
    """
    network.model.eval()
    tree = network.tree
    histories = Histories(network, batch.inputs, batch.window, batch.time)
    held = pseudo_targets(network, histories, targets)
    found = []
    samples = len(targets)
    nodes = np.broadcast_to(np.arange(tree.size(network.first_level)), (samples, tree.size(network.first_level)))
    for level in range(network.first_level, tree.depth + 1):
        if level in levels:
            wanted = np.where(held[level] > 0, _ancestors(tree, level, targets), NO_ITEM)
            drawn = random.integers(0, tree.size(level), (samples, negatives))
            together = np.concatenate([wanted, drawn, nodes], axis=1)
            counted = _first_or_foreign(together, wanted.shape[1]) & (together != NO_ITEM)
            labels = np.zeros(together.shape, np.float32)
            labels[:, : wanted.shape[1]] = 1
            # A node is drawn `drawn_rate` times on average. In the beam it is a negative once more.
            drawn_rate = negatives / tree.size(level)
            reached = _among(together, nodes, tree.size(level))
            offsets = np.where(reached, np.log(drawn_rate / (1 + drawn_rate)), 0.0).astype(np.float32)
            found.append(NodeSamples(level, np.maximum(together, 0), labels, counted.astype(np.float32), offsets))
        if level < tree.depth:
            scores = histories.logits(level, nodes)
            kept = np.argpartition(-scores, min(beam, nodes.shape[1]) - 1, axis=1)[:, :beam]
            nodes = tree.children(level, np.take_along_axis(nodes, kept, axis=1))
    return found


def pseudo_targets(
    network: TreeNetwork, histories: Histories, targets: NDArray[np.int64]
) -> dict[int, NDArray[np.float32]]:
    """By level, the pseudo-target (sample, target) of each target's ancestor: 1 if its best children lead to one of the
    sample's targets."""
    tree = network.tree
    held = {tree.depth: (targets != NO_ITEM).astype(np.float32)}
    for level in range(tree.depth, network.first_level, -1):
        own = _ancestors(tree, level, targets)
        siblings = np.where(own == NO_ITEM, NO_ITEM, tree.siblings(level, own))
        scores = histories.logits(level, np.concatenate([own, siblings], axis=1))
        own_scores, sibling_scores = np.split(scores, 2, axis=1)
        held_siblings = ((siblings[:, :, None] == own[:, None]) * held[level][:, None]).max(axis=2)
        held[level - 1] = np.where(own_scores >= sibling_scores, held[level], held_siblings)
    return held


def _ancestors(tree: Tree, level: int, items: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(items == NO_ITEM, NO_ITEM, tree.ancestors(level)[items])


def _among(nodes: NDArray[np.int64], reached: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Mask of the nodes (sample, node) that the beam has reached, on a level of `size` nodes."""
    rows = np.arange(len(nodes))[:, None] * (size + 1) + 1  # `NO_ITEM` stays inside its row.
    found: NDArray[np.bool_] = np.isin(rows + nodes, rows + reached)
    return found


def _first_or_foreign(nodes: NDArray[np.int64], own: int) -> NDArray[np.bool_]:
    """Mask of the nodes (sample, node) to count: of the first `own` columns the first occurrence of each node, of the
    others those that are not in the first columns."""
    earlier = np.tri(nodes.shape[1], own, -1, dtype=bool)
    same = nodes[:, :, None] == nodes[:, None, :own]
    counted: NDArray[np.bool_] = ~(same & earlier).any(axis=2)
    return counted
