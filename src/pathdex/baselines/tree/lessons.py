"""Which nodes a step trains on: drawn from a level (TDM), or reached by a beam of the model itself (OTM)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.baselines.tree.network import Histories, TreeNetwork
from pathdex.baselines.tree.step import Lesson
from pathdex.baselines.tree.tree import Tree
from pathdex.training.windows import Batch


def draw_levels(first: int, depth: int, count: int, random: np.random.Generator) -> list[int]:
    """The leaves and `count` levels above them."""
    above = np.arange(first, depth)
    chosen = random.choice(above, min(count, len(above)), replace=False)
    return [*sorted(chosen.tolist()), depth]


def sampled_lesson(
    tree: Tree, level: int, targets: NDArray[np.int64], negatives: int, random: np.random.Generator
) -> Lesson:
    """TDM's layer-wise sampling: the target's ancestor against nodes drawn evenly from the rest of its level."""
    own = tree.ancestors(level)[targets][:, None]
    others = random.integers(0, max(tree.size(level) - 1, 1), (len(targets), negatives))
    others += others >= own
    nodes = np.concatenate([own, others], axis=1)
    labels = np.zeros(nodes.shape, np.float32)
    labels[:, 0] = 1
    if tree.size(level) == 1:
        return Lesson(level, own, labels[:, :1])
    return Lesson(level, nodes, labels)


@torch.no_grad()
def beam_lessons(
    network: TreeNetwork, batch: Batch, levels: list[int], width: int, negatives: int, random: np.random.Generator
) -> list[Lesson]:
    """OTM's beam-aware lessons (Zhuo et al. 2020): the nodes that a beam scores, with Bayes-optimal pseudo-targets.

    A leaf's target is 1 for the item taken. An inner node's is that of the child which the model likes best, so it is
    1 only where following the best children leads to the item. The item's own ancestors are always among the nodes.

    Differs from the paper: `negatives` nodes are drawn beside those of the beam, as for TDM. What a beam of this width
    leaves out would otherwise forget that it is not wanted, and a wider one finds it.
    """
    network.model.eval()
    tree = network.tree
    histories = Histories(network, batch.inputs, batch.window, batch.time)
    targets = pseudo_targets(network, histories, batch.targets)
    lessons = []
    samples = len(batch.targets)
    nodes = np.broadcast_to(np.arange(tree.size(network.first_level)), (samples, tree.size(network.first_level)))
    for level in range(network.first_level, tree.depth + 1):
        if level in levels:
            own = tree.ancestors(level)[batch.targets][:, None]
            drawn = sampled_lesson(tree, level, batch.targets, negatives, random).nodes
            counts = ((nodes != own) & (nodes >= 0)).astype(np.float32)
            weights = np.concatenate([np.ones_like(drawn, np.float32), counts], axis=1)
            labels = np.zeros_like(weights)
            labels[:, 0] = targets[level]
            lessons.append(Lesson(level, np.concatenate([drawn, np.maximum(nodes, 0)], axis=1), labels, weights))
        if level < tree.depth:
            scores = histories.logits(level, nodes)
            kept = np.argpartition(-scores, min(width, nodes.shape[1]) - 1, axis=1)[:, :width]
            nodes = tree.children(level, np.take_along_axis(nodes, kept, axis=1))
    return lessons


def pseudo_targets(
    network: TreeNetwork, histories: Histories, targets: NDArray[np.int64]
) -> dict[int, NDArray[np.float32]]:
    """By level, the pseudo-target of each target's ancestor: 1 where the best children lead from it to the target."""
    tree = network.tree
    held = {tree.depth: np.ones(len(targets), np.float32)}
    for level in range(tree.depth, network.first_level, -1):
        own = tree.ancestors(level)[targets]
        pairs = np.column_stack([own, tree.siblings(level, own)])
        scores = histories.logits(level, pairs)
        held[level - 1] = held[level] * (scores[:, 0] >= scores[:, 1])
    return held
