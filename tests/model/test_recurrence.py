"""The compiled inputs and GRU against torch's operators and their gradients."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.model.dropout import draw_dropout
from pathdex.model.recurrence import gather_inputs, recurrent_features

TOLERANCE = 1e-4


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 6), st.sampled_from([1, 2, 70]), st.sampled_from([4, 16]), st.integers(0, 99))
def test_features_and_gradients_equal_those_of_torch(time: int, batch: int, dim: int, seed: int) -> None:
    torch.manual_seed(seed)
    recurrent = torch.nn.GRU(dim, dim)
    vectors = torch.randn(time, batch, dim, requires_grad=True)
    samples = torch.randint(time * batch, (2 * time,))  # with repeats
    found = recurrent_features(vectors, recurrent, samples)
    means = vectors.cumsum(dim=0) / torch.arange(1, time + 1)[:, None, None]
    every = torch.cat([recurrent(vectors)[0], vectors, means], dim=2)
    expected = every.flatten(0, 1)[samples]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

    weight, inputs = torch.randn_like(found), [vectors, *recurrent.parameters()]
    pairs = zip(*(torch.autograd.grad((one * weight).sum(), inputs) for one in (found, expected)), strict=True)
    for own, reference in pairs:
        torch.testing.assert_close(own, reference, rtol=TOLERANCE, atol=TOLERANCE * float(reference.abs().max() + 1))


def test_inputs_are_rows_and_the_start_vector() -> None:
    rows, start = torch.randn(5, 4, requires_grad=True), torch.randn(3, requires_grad=True)
    codes = torch.tensor([[4, -1], [0, 4]])
    found = gather_inputs(rows, start, codes, 0.0)
    expected = torch.cat([rows[:, :3], start[None]])[torch.where(codes < 0, 5, codes)].swapaxes(0, 1)
    torch.testing.assert_close(found, expected)
    weight = torch.randn_like(found)
    for own, reference in zip(
        *(torch.autograd.grad((one * weight).sum(), [rows, start]) for one in (found, expected)), strict=True
    ):
        torch.testing.assert_close(own, reference)


def test_dropout_is_the_mask() -> None:
    rows, codes = torch.ones(3, 8), torch.zeros(5, 40, dtype=torch.long)
    torch.manual_seed(1)
    found = gather_inputs(rows, rows[0], codes, 0.5)
    assert set(found.unique().tolist()) == {0.0, 2.0}
    torch.manual_seed(1)
    assert found.equal(draw_dropout((5, 40, 8), 0.5).mask.swapaxes(0, 1))


def test_a_large_batch_has_the_gradient_of_torch_up_to_rounding() -> None:
    torch.manual_seed(0)
    recurrent, samples = torch.nn.GRU(8, 8), torch.randint(1000, (2000,))
    vectors = torch.randn(20, 50, 8, requires_grad=True)
    found = recurrent_features(vectors, recurrent, samples)[:, :8]
    expected = recurrent(vectors)[0].flatten(0, 1)[samples]
    inputs, weight = [vectors, *recurrent.parameters()], torch.randn_like(found)
    pairs = zip(*(torch.autograd.grad((one * weight).sum(), inputs) for one in (found, expected)), strict=True)
    for own, reference in pairs:
        torch.testing.assert_close(own, reference, rtol=2e-2, atol=2e-2 * float(reference.abs().max()))
