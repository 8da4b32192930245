import pytest
import torch

from pathdex.model.encoders import ENCODERS, running_mean


@pytest.mark.parametrize("kind", ENCODERS)
def test_encoder_is_causal(kind: str) -> None:
    torch.manual_seed(0)
    encoder = ENCODERS[kind](8, 0.5).eval()
    vectors = torch.randn(3, 6, 8)
    changed = vectors.clone()
    changed[:, 4:] = torch.randn(3, 2, 8)
    before, after = encoder(vectors), encoder(changed)
    assert before.shape == (3, 6, 8)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


@pytest.mark.parametrize("kind", ["gru", "attention"])
def test_output_depends_on_order(kind: str) -> None:
    torch.manual_seed(0)
    encoder = ENCODERS[kind](8, 0.0).eval()
    vectors = torch.randn(1, 4, 8)
    swapped = vectors[:, [1, 0, 2, 3]]
    assert not torch.allclose(encoder(vectors)[:, -1], encoder(swapped)[:, -1])


def test_running_mean_by_hand() -> None:
    vectors = torch.tensor([[[2.0], [4.0], [9.0]]])
    assert running_mean(vectors).squeeze().tolist() == [2.0, 3.0, 5.0]


@pytest.mark.parametrize("kind", ["gru", "pooled"])
def test_direct_terms_start_at_half_the_last_item_and_1_5_times_the_mean(kind: str) -> None:
    encoder = ENCODERS[kind](2, 0.0)
    vectors = torch.tensor([[2.0, 0.0], [4.0, 1.0]])
    torch.testing.assert_close(encoder.last(vectors), 0.5 * vectors)
    torch.testing.assert_close(encoder.mean(vectors), 1.5 * vectors)
