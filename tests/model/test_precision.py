"""Products of gradients in a short format."""

import pytest
import torch

from pathdex.model import precision
from pathdex.model.precision import MIN_ROWS, STEP, gradient_dtype, linear, short_rows


def test_short_rows_are_padded_with_zeros() -> None:
    short = short_rows(torch.ones(STEP + 1, 3), torch.bfloat16)
    assert short.dtype == torch.bfloat16
    assert short.shape == (2 * STEP, 3)
    assert short.sum() == 3 * (STEP + 1)


def test_rows_of_the_same_format_stay_as_they_are() -> None:
    matrix = torch.ones(3, 2)
    assert short_rows(matrix, torch.float32) is matrix


def test_small_batches_stay_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "_multiplies_bfloat16", lambda: True)
    assert gradient_dtype(MIN_ROWS - 1) == torch.float32
    assert gradient_dtype(MIN_ROWS) == torch.bfloat16
    monkeypatch.setattr(precision, "_multiplies_bfloat16", lambda: False)
    assert gradient_dtype(MIN_ROWS) == torch.float32


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_a_linear_map_has_the_gradients_of_torch(
    dtype: torch.dtype, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "gradient_dtype", lambda rows: dtype)
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
