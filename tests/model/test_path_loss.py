"""The hand-written structure loss against autograd."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.model import path_loss as module
from pathdex.model.losses import structure_loss
from pathdex.model.parallel import own_threads
from pathdex.model.path_loss import mean_path_loss, set_path_gradients
from pathdex.model.structure import MLPStructure, RecurrentStructure, path_log_probabilities

MANY = 4096
"""Draws that give the exact gradient up to 1 / MANY of each sample's."""


def gradients(loss: torch.Tensor, users: torch.Tensor, structure: torch.nn.Module) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, [users, *structure.parameters()]))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 4), st.sampled_from([2, 5, 17]), st.integers(0, 99))
def test_loss_and_gradients_equal_those_of_autograd(samples: int, each: int, depth: int, nodes: int, seed: int) -> None:
    torch.manual_seed(seed)
    structure, users = MLPStructure(6, nodes, depth, 8, 3), torch.randn(samples, 6, requires_grad=True)
    paths = torch.randint(nodes, (samples, each, depth))  # with shared prefixes and equal paths
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DRAWS", MANY)
        patch.setattr(module, "SAMPLES", 16)
        found = mean_path_loss(structure, users, paths, torch.rand(samples))
    expected = structure_loss(path_log_probabilities(structure, users, paths))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    pairs = zip(gradients(found, users, structure), gradients(expected, users, structure), strict=True)
    for own, reference in pairs:
        torch.testing.assert_close(own, reference, rtol=1e-3, atol=1e-3)


def test_the_mean_over_all_offsets_is_the_gradient_of_autograd() -> None:
    torch.manual_seed(0)
    structure, users = MLPStructure(6, 21, 3, 8, 3), torch.randn(9, 6, requires_grad=True)
    paths, rounds = torch.randint(21, (9, 3, 3)), 400
    total = [torch.zeros_like(one) for one in (users, *structure.parameters())]
    for number in range(rounds):
        loss = mean_path_loss(structure, users, paths, torch.full((9,), (number + 0.5) / rounds))
        for one, found in zip(total, gradients(loss, users, structure), strict=True):
            one += found / rounds
    expected = structure_loss(path_log_probabilities(structure, users, paths))
    for own, reference in zip(total, gradients(expected, users, structure), strict=True):
        torch.testing.assert_close(own, reference, rtol=1e-2, atol=1e-3)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    torch.manual_seed(0)
    structure, users = MLPStructure(6, 21, 3, 8, 3), torch.randn(2500, 6, requires_grad=True)
    paths, offsets, threads = torch.randint(21, (2500, 3, 3)), torch.rand(2500), torch.get_num_threads()
    found = []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            with own_threads():
                found.append(gradients(mean_path_loss(structure, users, paths, offsets), users, structure))
    finally:
        torch.set_num_threads(threads)
    assert all(one.equal(two) for one, two in zip(*found, strict=True))


def test_a_large_batch_has_the_gradient_of_autograd_up_to_rounding() -> None:
    torch.manual_seed(0)
    structure, users = MLPStructure(16, 20, 3, 32, 8), torch.randn(1500, 16, requires_grad=True)
    paths = torch.randint(20, (1500, 3, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DRAWS", MANY)
        found = mean_path_loss(structure, users, paths, torch.rand(1500))
    expected = structure_loss(path_log_probabilities(structure, users, paths))
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)
    pairs = zip(gradients(found, users, structure), gradients(expected, users, structure), strict=True)
    for own, reference in pairs:
        assert float((own - reference).norm()) < 0.03 * float(reference.norm())


def test_other_layer_networks_use_autograd() -> None:
    torch.manual_seed(0)
    structure, users, paths = RecurrentStructure(4, 3, 2, 5, 2), torch.randn(7, 4), torch.randint(3, (7, 2, 2))
    expected = structure_loss(path_log_probabilities(structure, users, paths))
    assert mean_path_loss(structure, users, paths, torch.rand(7)).equal(expected)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_gradients_without_autograd_are_those_of_a_backward_pass(depth: int) -> None:
    torch.manual_seed(0)
    structure, users = MLPStructure(6, 21, depth, 8, 3), torch.randn(40, 6)
    paths, offsets = torch.randint(21, (40, 3, depth)), torch.rand(40)
    loss = mean_path_loss(structure, users, paths, offsets)
    expected = torch.autograd.grad(loss, list(structure.parameters()))
    assert set_path_gradients(structure, users, paths, offsets) == loss.item()
    for parameter, gradient in zip(structure.parameters(), expected, strict=True):
        assert parameter.grad is not None
        assert parameter.grad.equal(gradient)
