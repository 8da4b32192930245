"""Dropout masks against torch."""

import pytest
import torch
from torch.nn.functional import dropout

from pathdex.model.dropout import dropout_mask


def torch_uses_its_own_generator() -> bool:
    """Whether torch draws masks from its Mersenne twister: not on Intel processors, where MKL draws them."""
    torch.manual_seed(0)
    first = torch.empty(8).bernoulli_(0.5)
    torch.manual_seed(0)
    second = torch.rand(8, dtype=torch.float64) < 0.5
    return bool(first.bool().equal(second))


@pytest.mark.skipif(not torch_uses_its_own_generator(), reason="MKL draws torch's masks on this processor")
@pytest.mark.parametrize("drawn", [0, 1, 700])
@pytest.mark.parametrize("share", [0.5, 0.2, 0.3])
def test_masks_and_the_state_after_them_are_those_of_torch(share: float, drawn: int) -> None:
    results = []
    for mask in (dropout_mask, lambda shape, share: dropout(torch.ones(shape), share)):
        torch.manual_seed(3)
        torch.randint(9, (drawn,))
        masks = [mask(shape, share) for shape in ((3, 5, 7), (40, 16), (1,), (2, 311))]
        results.append([*masks, torch.rand(900), torch.randn(20)])
    for found, expected in zip(*results, strict=True):
        assert found.equal(expected)


def test_the_share_of_zeros_and_the_scale() -> None:
    torch.manual_seed(0)
    mask = dropout_mask((200, 100), 0.25)
    assert mask.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert float(mask.eq(0).float().mean()) == pytest.approx(0.25, abs=0.02)
