"""Training nodes: drawn, and reached by a beam."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.recommenders.tree.network import Histories, TreeNetwork
from pathdex.recommenders.tree.samples import beam_samples, draw_levels, following_items, pseudo_targets, sampled_nodes
from pathdex.recommenders.tree.tree import NO_ITEM, Tree
from pathdex.training.windows import Batch
from tests.recommenders.tree.tiny import tiny_network

TARGETS = np.arange(11)


def eleven_samples() -> Batch:
    random = np.random.default_rng(0)
    inputs = random.integers(0, 11, (11, 3))
    return Batch(inputs, np.arange(11), np.full(11, 2), np.arange(11), TARGETS, np.zeros(11, np.int64))


def test_levels_always_include_the_leaves() -> None:
    random = np.random.default_rng(0)
    drawn = [draw_levels(3, 7, 2, random) for _ in range(50)]
    assert all(levels[-1] == 7 and len(set(levels)) == 3 for levels in drawn)
    assert {level for levels in drawn for level in levels} == {3, 4, 5, 6, 7}
    assert draw_levels(7, 7, 2, random) == [7]
    assert draw_levels(6, 7, 2, random) == [6, 7]


def test_negatives_are_other_nodes_of_the_level() -> None:
    tree = Tree(np.random.default_rng(0).permutation(11))
    for level in (1, 2, 4):
        sample = sampled_nodes(tree, level, TARGETS, 200, np.random.default_rng(1))
        assert sample.nodes[:, 0].tolist() == tree.ancestors(level).tolist()
        assert sample.labels.sum(axis=1).tolist() == [1.0] * 11
        for row in sample.nodes:
            assert set(row[1:].tolist()) == set(range(tree.size(level))) - {int(row[0])}


def test_level_of_one_node_has_no_negatives() -> None:
    sample = sampled_nodes(Tree(np.arange(1)), 1, np.zeros(2, np.int64), 5, np.random.default_rng(0))
    assert sample.nodes.tolist() == [[0], [0]]
    assert sample.labels.tolist() == [[1.0], [1.0]]


def leaf_by_best_children(network: TreeNetwork, histories: Histories, row: int, level: int, node: int) -> int:
    while level < network.tree.depth:
        pair = network.tree.children(level, np.array([node]))
        everyone = np.tile(pair, (11, 1))
        scores = histories.logits(level + 1, everyone)[row]
        node, level = int(pair[np.argmax(scores)]), level + 1
    return node


def several_targets() -> NDArray[np.int64]:
    """Three items per sample: some are siblings, one occurs twice, some are missing."""
    targets = np.random.default_rng(1).permuted(np.tile(TARGETS, (11, 1)), axis=1)[:, :3]
    targets[:4, 2] = NO_ITEM
    targets[5] = targets[5, 0]
    return targets


def test_following_items_end_with_the_sequence() -> None:
    sequences = Ragged.from_rows([[4, 5, 6], [], [7, 8]])
    assert following_items(sequences, np.array([0, 2, 3, 4]), 2).tolist() == [[4, 5], [6, -1], [7, 8], [8, -1]]
    assert following_items(sequences, np.array([1]), 5).tolist() == [[5, 6, -1, -1, -1]]


@pytest.mark.parametrize("targets", [TARGETS[:, None], several_targets()], ids=["one", "several"])
@torch.no_grad()
def test_pseudo_target_follows_the_best_children(targets: NDArray[np.int64]) -> None:
    network, batch = tiny_network(11), eleven_samples()
    histories = Histories(network, batch.inputs, batch.window, batch.time)
    held = pseudo_targets(network, histories, targets)
    assert set(held) == {1, 2, 3, 4}
    for level, values in held.items():
        nodes = network.tree.ancestors(level)
        for row, wanted in enumerate(targets.tolist()):
            for column, target in enumerate(wanted):
                if target == NO_ITEM:
                    assert values[row, column] == 0
                else:
                    reached = leaf_by_best_children(network, histories, row, level, int(nodes[target]))
                    assert values[row, column] == (reached in wanted)


def test_best_child_can_lead_to_another_target() -> None:
    """If both items of a pair are taken, the target of their parent is 1, whichever the model prefers."""
    network, batch = tiny_network(11), eleven_samples()
    pair = network.tree.leaves[(network.tree.leaves != NO_ITEM).all(axis=1)][0]
    with torch.no_grad():
        histories = Histories(network, batch.inputs, batch.window, batch.time)
        held = pseudo_targets(network, histories, np.tile(pair, (11, 1)))
        alone = [pseudo_targets(network, histories, np.full((11, 1), item))[3] for item in pair]
    assert held[3].min() == 1
    assert (alone[0] + alone[1] == 1).all()


@pytest.mark.parametrize("targets", [TARGETS[:, None], several_targets()], ids=["one", "several"])
@torch.no_grad()
def test_beam_samples_contain_the_nodes_of_the_beam(targets: NDArray[np.int64]) -> None:
    network, batch = tiny_network(11), eleven_samples()
    tree = network.tree
    histories = Histories(network, batch.inputs, batch.window, batch.time)
    held = pseudo_targets(network, histories, targets)
    samples = beam_samples(network, batch, targets, [1, 3, 4], 2, 3, np.random.default_rng(0))
    assert [sample.level for sample in samples] == [1, 3, 4]
    count = targets.shape[1]
    for row in range(11):
        nodes = np.arange(2)
        for level in range(1, 5):
            ancestors = np.where(targets[row] == NO_ITEM, NO_ITEM, tree.ancestors(level)[targets[row]])
            wanted = ancestors[held[level][row] == 1].tolist()
            beam = {node for node in nodes.tolist() if node != NO_ITEM}
            for sample in samples:
                if sample.level == level:
                    assert sample.weights is not None
                    assert sample.offsets is not None
                    counts = sample.weights[row] > 0
                    first, drawn, reached = np.split(np.arange(len(counts)), [count, count + 3])
                    assert sample.nodes[row, first][counts[first]].tolist() == list(dict.fromkeys(wanted))
                    assert not set(sample.nodes[row, drawn][counts[drawn]].tolist()) & set(wanted)
                    assert sorted(sample.nodes[row, reached][counts[reached]].tolist()) == sorted(beam - set(wanted))
                    assert (sample.labels[row, first] == 1).all()
                    assert (sample.labels[row, count:] == 0).all()
                    inside = np.log(3 / tree.size(level) / (1 + 3 / tree.size(level)))
                    expected = [inside if node in beam else 0 for node in sample.nodes[row][counts].tolist()]
                    np.testing.assert_allclose(sample.offsets[row][counts], expected, rtol=1e-5)
            if level < 4:
                scores = histories.logits(level, np.tile(nodes, (11, 1)))[row]
                nodes = tree.children(level, nodes[np.argsort(-scores)[:2]])
