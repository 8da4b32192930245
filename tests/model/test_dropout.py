"""Dropout from random bits."""

import pytest
import torch

from pathdex.model.dropout import draw_dropout


@pytest.mark.parametrize("share", [1e-6, 0.25, 0.5, 0.95])
def test_the_share_of_zeros_and_the_scale(share: float) -> None:
    torch.manual_seed(0)
    mask = draw_dropout((200, 101, 3), share).mask
    assert mask.dtype == torch.float32
    assert mask.shape == (200, 101, 3)
    assert mask.max().item() == pytest.approx(1 / (1 - share), rel=1e-3)
    assert float(mask.eq(0).float().mean()) == pytest.approx(share, abs=0.01)
    assert set(mask.unique().tolist()) <= {0.0, mask.max().item()}


def test_without_dropout_there_are_no_bits() -> None:
    assert draw_dropout((4, 5, 3), 0.0).bits.shape == (0, 0, 3)


def test_elements_are_independent() -> None:
    torch.manual_seed(0)
    mask = draw_dropout((100_000, 4), 0.5).mask - 1
    assert float((mask.T @ mask / len(mask) - torch.eye(4)).abs().max()) < 0.02
    assert float(mask.flatten()[1:] @ mask.flatten()[:-1]) / mask.numel() == pytest.approx(0, abs=0.01)


def test_bits_depend_on_the_seed_alone() -> None:
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(draw_dropout((9, 7), 0.5).bits)
    assert drawn[0].equal(drawn[1])
    assert not drawn[0].equal(drawn[2])
