"""The compiled inputs and GRU against torch's operators and their gradients."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.model.precision import gradient_dtype
from pathdex.model.recurrence import gather_inputs, recurrent_features

TOLERANCE = 1e-4 if gradient_dtype() == torch.float32 else 2e-2


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
    expected = torch.cat([rows[:, :3], start[None]])[torch.where(codes < 0, 5, codes)]
    torch.testing.assert_close(found, expected)
    weight = torch.randn_like(found)
    for own, reference in zip(
        *(torch.autograd.grad((one * weight).sum(), [rows, start]) for one in (found, expected)), strict=True
    ):
        torch.testing.assert_close(own, reference)


def test_dropout_follows_torchs_seed() -> None:
    rows, codes = torch.ones(3, 8), torch.zeros(40, dtype=torch.long)
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(gather_inputs(rows, rows[0], codes, 0.5))
    assert results[0].equal(results[1])
    assert not results[0].equal(results[2])
    assert set(results[0].unique().tolist()) == {0.0, 2.0}
