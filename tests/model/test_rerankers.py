"""Scores of the reranker by hand, and the losses it can be trained with."""

import torch

from pathdex.config import EncoderConfig
from pathdex.model.rerankers import RERANKERS, rerank_scores


def test_a_score_is_the_inner_product_and_the_bias() -> None:
    users, vectors = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 1.0], [0.0, -1.0]])
    assert rerank_scores(users, vectors, torch.tensor([0.5, 0.0])).tolist() == [[5.5, -2.0]]


def test_every_choice_of_the_configuration_has_a_loss() -> None:
    choices = EncoderConfig.__dataclass_fields__["reranker"].metadata["choices"]
    assert set(RERANKERS) == set(choices)
    for loss in RERANKERS.values():
        assert torch.isfinite(loss(torch.tensor([1.0]), torch.tensor([[0.0, -torch.inf]])))
