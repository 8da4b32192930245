"""Compiled score and gradient against the node model in torch."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from pathdex.recommenders.tree.kernels import node_logits, node_loss
from pathdex.recommenders.tree.node_model import NodeModel, User


class Case(NamedTuple):
    """Five users of four sequences, each with seven of nine nodes; some nodes have no weight."""

    model: NodeModel
    items: Tensor
    table: Tensor
    codes: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray

    def user(self) -> User:
        return self.model.read(self.items, torch.tensor([0, 1, 2, 3, 3]), torch.tensor([0, 1, 2, 4, 3]))

    def logits(self) -> Tensor:
        gathered = functional.embedding(torch.from_numpy(self.codes), self.table)
        return self.model(self.user(), gathered[..., :-1], gathered[..., -1])

    def gradients(self, loss: Tensor) -> list[Tensor]:
        parameters = [one for name, one in self.model.named_parameters() if name != "start"]
        return [
            torch.zeros(1) if gradient is None else gradient
            for gradient in torch.autograd.grad(2 * loss, [self.items, self.table, *parameters], allow_unused=True)
        ]


def case(seed: int, *, attention: bool) -> Case:
    torch.manual_seed(seed)
    model = NodeModel(5, 3, 6, 0.0, attention=attention)
    for weights in (model.recency, model.out.weight, model.key.weight):
        torch.nn.init.normal_(weights)
    random = np.random.default_rng(seed)
    codes = random.integers(0, 9, (5, 7))
    labels, weights = random.integers(0, 2, codes.shape), random.integers(0, 3, codes.shape)
    items, table = torch.randn(4, 5, 5, requires_grad=True), torch.randn(9, 6, requires_grad=True)
    offsets = random.normal(0, 2, codes.shape)
    return Case(model, items, table, codes, *(one.astype(np.float32) for one in (labels, weights, offsets)))


@pytest.mark.parametrize("attention", [True, False])
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_scores_equal_the_node_model(attention: bool, seed: int) -> None:
    one = case(seed, attention=attention)
    with torch.no_grad():
        found, expected = node_logits(one.model, one.user(), one.table, one.codes), one.logits()
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("attention", [True, False])
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_gradient_equals_autograd(attention: bool, seed: int) -> None:
    one = case(seed, attention=attention)
    found = node_loss(one.model, one.user(), one.table, one.codes, one.labels, one.weights, one.offsets)
    expected = functional.binary_cross_entropy_with_logits(
        one.logits() + torch.from_numpy(one.offsets),
        torch.from_numpy(one.labels),
        torch.from_numpy(one.weights),
        reduction="sum",
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    for gradient, same in zip(one.gradients(found), one.gradients(expected), strict=True):
        torch.testing.assert_close(gradient, same, rtol=1e-3, atol=1e-3)


def test_nodes_without_weight_have_no_effect() -> None:
    one = case(0, attention=True)
    loss = node_loss(one.model, one.user(), one.table, one.codes, one.labels, np.zeros_like(one.weights), one.offsets)
    assert float(loss.detach()) == 0
    assert all(not gradient.any() for gradient in one.gradients(loss))
