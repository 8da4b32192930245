"""Nodes to learn from: drawn, and reached by a beam."""

import numpy as np
import torch

from pathdex.baselines.tree.lessons import beam_lessons, draw_levels, pseudo_targets, sampled_lesson
from pathdex.baselines.tree.network import Histories, TreeNetwork
from pathdex.baselines.tree.tree import Tree
from pathdex.training.windows import Batch
from tests.baselines.tree.tiny import tiny_network

TARGETS = np.arange(11)


def eleven_samples() -> Batch:
    random = np.random.default_rng(0)
    inputs = random.integers(0, 11, (11, 3))
    return Batch(inputs, np.arange(11), np.full(11, 2), np.arange(11), TARGETS)


def test_the_leaves_are_always_among_the_levels() -> None:
    random = np.random.default_rng(0)
    drawn = [draw_levels(3, 7, 2, random) for _ in range(50)]
    assert all(levels[-1] == 7 and len(set(levels)) == 3 for levels in drawn)
    assert {level for levels in drawn for level in levels} == {3, 4, 5, 6, 7}
    assert draw_levels(7, 7, 2, random) == [7]
    assert draw_levels(6, 7, 2, random) == [6, 7]


def test_negatives_are_the_other_nodes_of_the_level() -> None:
    tree = Tree(np.random.default_rng(0).permutation(11))
    for level in (1, 2, 4):
        lesson = sampled_lesson(tree, level, TARGETS, 200, np.random.default_rng(1))
        assert lesson.nodes[:, 0].tolist() == tree.ancestors(level).tolist()
        assert lesson.labels.sum(axis=1).tolist() == [1.0] * 11
        for row in lesson.nodes:
            assert set(row[1:].tolist()) == set(range(tree.size(level))) - {int(row[0])}


def test_a_level_of_one_node_has_no_negatives() -> None:
    lesson = sampled_lesson(Tree(np.arange(1)), 1, np.zeros(2, np.int64), 5, np.random.default_rng(0))
    assert lesson.nodes.tolist() == [[0], [0]]
    assert lesson.labels.tolist() == [[1.0], [1.0]]


def leaf_by_best_children(network: TreeNetwork, histories: Histories, row: int, level: int, node: int) -> int:
    while level < network.tree.depth:
        pair = network.tree.children(level, np.array([node]))
        everyone = np.tile(pair, (11, 1))
        scores = histories.logits(level + 1, everyone)[row]
        node, level = int(pair[np.argmax(scores)]), level + 1
    return node


@torch.no_grad()
def test_a_pseudo_target_says_where_the_best_children_lead() -> None:
    network, batch = tiny_network(11), eleven_samples()
    histories = Histories(network, batch.inputs, batch.window, batch.time)
    held = pseudo_targets(network, histories, batch.targets)
    assert set(held) == {1, 2, 3, 4}
    for level, values in held.items():
        nodes = network.tree.ancestors(level)
        for row, target in enumerate(TARGETS.tolist()):
            reached = leaf_by_best_children(network, histories, row, level, int(nodes[target]))
            assert values[row] == (reached == target)


@torch.no_grad()
def test_a_level_learns_from_the_nodes_that_the_beam_scores() -> None:
    network, batch = tiny_network(11), eleven_samples()
    tree = network.tree
    histories = Histories(network, batch.inputs, batch.window, batch.time)
    lessons = beam_lessons(network, batch, [1, 3, 4], 2, 3, np.random.default_rng(0))
    assert [lesson.level for lesson in lessons] == [1, 3, 4]
    for row in range(11):
        nodes = np.arange(2)
        for level in range(1, 5):
            own = int(tree.ancestors(level)[row])
            for lesson in lessons:
                if lesson.level == level:
                    assert lesson.weights is not None
                    counted = lesson.nodes[row][lesson.weights[row] > 0].tolist()
                    assert counted[0] == own
                    assert own not in counted[1:4]
                    assert sorted(counted[4:]) == sorted({node for node in nodes.tolist() if node >= 0} - {own})
                    assert lesson.labels[row, 1:].sum() == 0
            if level < 4:
                scores = histories.logits(level, np.tile(nodes, (11, 1)))[row]
                nodes = tree.children(level, nodes[np.argsort(-scores)[:2]])
