"""Products of gradients in a short format."""

import pytest
import torch

from pathdex.model import precision
from pathdex.model.precision import STEP, linear, short_rows, short_weight


def test_short_matrices_are_padded_with_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "gradient_dtype", lambda: torch.bfloat16)
    short = short_rows(torch.ones(STEP + 1, 3))
    assert short.dtype == torch.bfloat16
    assert short.shape == (2 * STEP, 3)
    assert short.sum() == 3 * (STEP + 1)


def test_without_the_instructions_a_matrix_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "gradient_dtype", lambda: torch.float32)
    matrix = torch.ones(3, 2)
    assert short_rows(matrix) is matrix
    assert short_weight(matrix) is matrix


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_a_linear_map_has_the_gradients_of_torch(
    dtype: torch.dtype, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "gradient_dtype", lambda: dtype)
    torch.manual_seed(0)
    inputs, weight, bias = (torch.randn(*shape, requires_grad=True) for shape in ((70, 5), (3, 5), (3,)))
    found, expected = linear(inputs, weight, bias), torch.nn.functional.linear(inputs, weight, bias)
    torch.testing.assert_close(found, expected)
    factor = torch.randn_like(found)
    pairs = zip(
        *(torch.autograd.grad((one * factor).sum(), [inputs, weight, bias]) for one in (found, expected)), strict=True
    )
    for own, reference in pairs:
        torch.testing.assert_close(own, reference, rtol=tolerance, atol=tolerance * float(reference.abs().max()))
