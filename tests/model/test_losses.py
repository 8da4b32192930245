import math

import torch

from pathdex.model.losses import logistic_loss, negative_scores, softmax_loss, structure_loss


def test_structure_loss_is_the_log_of_the_sum_over_paths() -> None:
    probabilities = torch.tensor([[0.1, 0.3], [0.5, 0.0]])
    expected = -(math.log(0.4) + math.log(0.5)) / 2
    assert math.isclose(structure_loss(probabilities.log()).item(), expected, rel_tol=1e-6)


def test_softmax_loss_over_all_items_is_cross_entropy() -> None:
    scores, targets = torch.randn(6, 9), torch.randint(0, 9, (6,))
    positive = scores.gather(1, targets[:, None]).squeeze(1)
    negative = negative_scores(scores, torch.arange(9), targets, None)
    expected = torch.nn.functional.cross_entropy(scores, targets)
    torch.testing.assert_close(softmax_loss(positive, negative), expected)


def test_target_is_not_a_negative() -> None:
    items, targets = torch.tensor([2, 5, 7]), torch.tensor([5, 3, 9])
    negative = negative_scores(torch.zeros(3, 3), items, targets, None)
    assert negative.isinf().tolist() == [[False, True, False], [False] * 3, [False] * 3]


def test_log_q_correction_gives_an_unbiased_estimate() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(1, 50, generator=generator)
    inclusion = torch.rand(50, generator=generator) * 0.8 + 0.1
    sums = []
    for _ in range(4000):
        items = torch.nonzero(torch.rand(50, generator=generator) < inclusion).squeeze(1)
        negative = negative_scores(scores[:, items], items, torch.tensor([99]), inclusion[items].log())
        sums.append(negative.exp().sum())
    torch.testing.assert_close(torch.stack(sums).mean(), scores.exp().sum(), rtol=0.03, atol=0.0)


def test_logistic_loss_by_hand() -> None:
    loss = logistic_loss(torch.tensor([0.0]), torch.tensor([[0.0, -math.inf]]))
    assert math.isclose(loss.item(), 2 * math.log(2), rel_tol=1e-6)
