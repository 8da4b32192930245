"""A gradient step changes only the rows that it uses."""

import numpy as np
import torch

from pathdex.recommenders.tree.network import Histories
from pathdex.recommenders.tree.step import NodeSamples, NodeStep, _local
from pathdex.training.windows import Batch
from tests.recommenders.tree.tiny import tiny_network


def one_sample(inputs: list[int], target: int) -> Batch:
    return Batch(
        np.array([inputs]),
        np.array([0]),
        np.array([len(inputs) - 1]),
        np.array([0]),
        np.array([target], np.int64),
        np.array([0]),
    )


def test_local_numbers_the_used_rows() -> None:
    used, (first, second) = _local(20, 10, [np.array([[27, -1], [22, 27]]), np.array([29])])
    assert used.tolist() == [22, 27, 29]
    assert (first.tolist(), second.tolist()) == ([[1, -1], [0, 1]], [2])


def test_only_used_rows_change() -> None:
    network = tiny_network(8, dropout=0.0)
    before = network.rows.clone()
    sample = NodeSamples(2, np.array([[1, 3]]), np.array([[1.0, 0.0]], np.float32))
    NodeStep(network)(one_sample([-1, 5, 6], 0), [sample])
    changed = set(torch.nonzero((network.rows != before).any(dim=1))[:, 0].tolist())
    first = network.tree.first_row(2)
    assert changed == {5, 6, first + 1, first + 3}


def test_loss_is_the_weighted_binary_cross_entropy() -> None:
    network = tiny_network(8, dropout=0.0)
    batch = one_sample([-1, 5, 6], 0)
    nodes, labels = np.array([[1, 3, 0]]), np.array([[1.0, 0.0, 0.0]], np.float32)
    with torch.no_grad():
        logits = Histories(network, batch.inputs, batch.window, batch.time).logits(2, nodes)[0]
    sample = NodeSamples(2, nodes, labels, np.array([[1.0, 1.0, 0.0]], np.float32))
    loss = NodeStep(network)(batch, [sample, sample])
    np.testing.assert_allclose(loss, 2 * (np.log1p(np.exp(-logits[0])) + np.log1p(np.exp(logits[1]))), rtol=1e-5)


def test_loss_adds_offsets_to_the_logits() -> None:
    batch, nodes = one_sample([-1, 5, 6], 0), np.array([[1, 3]])
    labels, offsets = np.array([[1.0, 0.0]], np.float32), np.array([[-2.0, 0.5]], np.float32)
    network = tiny_network(8, dropout=0.0)
    with torch.no_grad():
        logits = Histories(network, batch.inputs, batch.window, batch.time).logits(2, nodes)[0]
    loss = NodeStep(network)(batch, [NodeSamples(2, nodes, labels, offsets=offsets)])
    np.testing.assert_allclose(loss, np.log1p(np.exp(2 - logits[0])) + np.log1p(np.exp(logits[1] + 0.5)), rtol=1e-5)
