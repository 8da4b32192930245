"""Windows by hand, and the score against its formula."""

import math

import pytest
import torch
from torch import Tensor

from pathdex.recommenders.tree.node_model import NodeModel, User


def model(*, attention: bool = True) -> NodeModel:
    torch.manual_seed(0)
    return NodeModel(2, 3, 4, 0.5, attention=attention).eval()


def test_windows_double_with_distance() -> None:
    values = torch.arange(1.0, 7.0)  # 1 .. 6
    vectors = torch.stack([values, -values], dim=1)[None]
    user = model().read(vectors, torch.tensor([0, 0]), torch.tensor([5, 1]))
    assert user.windows[0, :, 0].tolist() == [6.0, 5.0, 3.5]
    assert user.windows[1, :, 1].tolist() == [-2.0, -1.0, 0.0]
    assert user.reached.tolist() == [3, 2]


def test_later_items_are_ignored() -> None:
    vectors = torch.randn(2, 5, 2, generator=torch.Generator().manual_seed(1))
    changed = vectors.clone()
    changed[:, 3:] += 1
    for one, other in zip(
        *(model().read(v, torch.tensor([1]), torch.tensor([2])) for v in (vectors, changed)), strict=True
    ):
        torch.testing.assert_close(one, other)


def slow_score(model: NodeModel, user: User, row: int, node: Tensor, bias: Tensor) -> float:
    if model.attention:
        reached = range(int(user.reached[row]))
        scores = [
            float(node @ model.key(user.windows[row, w])) / math.sqrt(2) + float(model.recency[w]) for w in reached
        ]
        top = sum(math.exp(score) for score in scores)
        seen = sum(math.exp(score) / top * user.windows[row, w] for w, score in enumerate(scores))
        direct = node @ (user.vector[row] + seen)
    else:
        seen = user.windows[row, 0]
        direct = node @ seen
    hidden = model.node_part(node) + model.seen_part(seen) + user.hidden[row]
    return float(direct + bias + model.out(torch.relu(hidden))[0])


@pytest.mark.parametrize("attention", [True, False])
@torch.no_grad()
def test_score_equals_its_formula(attention: bool) -> None:
    net = model(attention=attention)
    torch.nn.init.normal_(net.recency)
    torch.nn.init.normal_(net.key.weight)
    torch.nn.init.normal_(net.out.weight)
    user = net.read(torch.randn(1, 5, 2), torch.tensor([0, 0]), torch.tensor([4, 1]))
    nodes, bias = torch.randn(2, 3, 2), torch.randn(2, 3)
    scores = net(user, nodes, bias)
    for row in range(2):
        for place in range(3):
            expected = slow_score(net, user, row, nodes[row, place], bias[row, place])
            assert float(scores[row, place]) == pytest.approx(expected, rel=1e-4, abs=1e-5)
