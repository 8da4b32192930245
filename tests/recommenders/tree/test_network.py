"""Vectors of items and nodes."""

import numpy as np
import torch

from pathdex.recommenders.tree.network import Histories
from pathdex.recommenders.tree.tree import Tree
from tests.recommenders.tree.tiny import tiny_network


def test_replanted_node_is_the_mean_of_its_items() -> None:
    network = tiny_network(7)
    items = network.item_vectors.copy()
    tree = Tree(np.array([6, 5, 4, 3, 2, 1, 0]))
    network.replant(tree)
    np.testing.assert_array_equal(network.item_vectors, items)
    for level in range(tree.depth):
        for node in range(tree.size(level)):
            row = network.rows[tree.first_row(level) + node].numpy()
            np.testing.assert_allclose(row[:-1], items[tree.ancestors(level) == node].mean(axis=0), atol=1e-6)
            assert row[-1] == 0


def test_histories_are_represented_by_items_or_ancestors() -> None:
    items = np.array([[-1, 3, 0]])
    plain, joint = tiny_network(5), tiny_network(5, hierarchical=True)
    for level in (1, 2, 3):
        assert plain.history_rows(level, items).tolist() == [[-1, 3, 0]]
    tree = joint.tree
    for level in (1, 2):
        expected = [-1, *(tree.first_row(level) + int(tree.ancestors(level)[item]) for item in (3, 0))]
        assert joint.history_rows(level, items).tolist() == [expected]
    assert joint.history_rows(3, items).tolist() == [[-1, 3, 0]]


def test_batched_scores_equal_single_ones() -> None:
    network = tiny_network(9, hierarchical=True)
    items = np.array([[-1, 3, 0, 8], [-1, 7, -1, -1]])
    together = Histories(network, items, np.array([0, 1]), np.array([3, 1]))
    alone = Histories(network, items[1:, :2], np.array([0]), np.array([1]))
    nodes = np.array([[0, 3], [2, -1]])
    with torch.no_grad():
        scores = together.logits(2, nodes)
        np.testing.assert_allclose(scores[1:], alone.logits(2, nodes[1:]), rtol=1e-5)
    assert scores[1, 1] == -np.inf


def test_weights_round_trip() -> None:
    network, other = tiny_network(6), tiny_network(6, seed=1)
    other.restore(network.export())
    torch.testing.assert_close(other.rows, network.rows)
    for one, same in zip(network.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(one, same)
