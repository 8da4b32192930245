"""The fused softmax loss against the pure functions of `losses` and autograd."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.model import sampled_softmax
from pathdex.model.losses import negative_scores, softmax_loss
from pathdex.model.sampled_softmax import sampled_softmax_loss

TOLERANCE = 1e-3
DRAWS = 1 << 14
"""The gradient is then exact up to this share of a sample's."""


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 70), st.integers(1, 30), st.booleans(), st.integers(0, 99))
def test_loss_and_gradients_equal_those_of_torch(samples: int, number: int, corrected: bool, seed: int) -> None:
    torch.manual_seed(seed)
    users, rows = torch.randn(samples, 8, requires_grad=True), torch.randn(number + 10, 9, requires_grad=True)
    targets, offset = torch.randint(number + 10, (samples,)), torch.randn(number) if corrected else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampled_softmax, "DRAWS", DRAWS)
        patch.setattr(sampled_softmax, "SAMPLES", 16)
        found = sampled_softmax_loss(users, rows, targets, number, offset, torch.rand(samples))

    positive = (users * rows[targets, :8]).sum(dim=1) + rows[targets, 8]
    scores = users @ rows[:number, :8].T + rows[:number, 8]
    correction = None if offset is None else -offset
    expected = softmax_loss(positive, negative_scores(scores, torch.arange(number), targets, correction))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    pairs = zip(*(torch.autograd.grad(3 * one, [users, rows]) for one in (found, expected)), strict=True)
    one_draw = 3 / (DRAWS * samples) * max(float(one.detach().abs().max()) for one in (users, rows))
    for own, reference in pairs:
        slack = TOLERANCE * float(reference.abs().max()) + one_draw
        torch.testing.assert_close(own, reference, rtol=TOLERANCE, atol=slack)


def test_the_mean_over_all_points_is_the_gradient_of_torch() -> None:
    torch.manual_seed(0)
    users, rows = torch.randn(20, 8, requires_grad=True), torch.randn(90, 9, requires_grad=True)
    targets, rounds = torch.randint(90, (20,)), 200
    total = [torch.zeros_like(users), torch.zeros_like(rows)]
    for number in range(rounds):
        loss = sampled_softmax_loss(users, rows, targets, 70, None, torch.full((20,), (number + 0.5) / rounds))
        for one, found in zip(total, torch.autograd.grad(loss, [users, rows]), strict=True):
            one += found / rounds
    positive = (users * rows[targets, :8]).sum(dim=1) + rows[targets, 8]
    scores = users @ rows[:70, :8].T + rows[:70, 8]
    expected = softmax_loss(positive, negative_scores(scores, torch.arange(70), targets, None))
    torch.testing.assert_close(loss, expected)
    for own, reference in zip(total, torch.autograd.grad(expected, [users, rows]), strict=True):
        torch.testing.assert_close(own, reference, rtol=1e-2, atol=1e-3)
