"""The reference beam search (Algorithm 1): greedy with one path, exhaustive with all of them."""

import itertools

import pytest
import torch

from pathdex.model.beam import beam_search
from pathdex.model.structure import STRUCTURES, path_log_probabilities

K, D, DIM = 3, 3, 4


@pytest.fixture(params=sorted(STRUCTURES))
def structure(request: pytest.FixtureRequest) -> torch.nn.Module:
    torch.manual_seed(3)
    return STRUCTURES[request.param](DIM, K, D, 6, 2)


def test_a_beam_of_all_paths_is_exhaustive(structure: torch.nn.Module) -> None:
    users = torch.randn(2, DIM)
    paths = torch.tensor(list(itertools.product(range(K), repeat=D))).expand(2, -1, -1)
    with torch.no_grad():
        exhaustive = path_log_probabilities(structure, users, paths)  # type: ignore[arg-type]
    nodes, log_p = beam_search(structure, users, K**D)  # type: ignore[arg-type]
    torch.testing.assert_close(log_p, exhaustive.sort(dim=1, descending=True).values)
    torch.testing.assert_close(log_p.exp().sum(dim=1), torch.ones(2))
    assert len({tuple(path) for path in nodes[0].tolist()}) == K**D


def test_a_beam_of_one_is_greedy(structure: torch.nn.Module) -> None:
    users = torch.randn(1, DIM)
    nodes, _ = beam_search(structure, users, 1)  # type: ignore[arg-type]
    state = structure.begin(users)  # type: ignore[operator]
    for layer in range(D):
        best = structure.logits(state, layer).argmax(dim=-1)  # type: ignore[operator]
        assert nodes[0, 0, layer] == best[0]
        if layer + 1 < D:
            state = structure.advance(state, layer, best)  # type: ignore[operator]


def test_prefixes_limit_the_beam(structure: torch.nn.Module) -> None:
    prefixes = [torch.tensor(codes) for codes in ([0, 2], [1, 7], [4, 22])]
    nodes, log_p = beam_search(structure, torch.randn(1, DIM), 9, prefixes)  # type: ignore[arg-type]
    assert {tuple(path) for path in nodes[0].tolist()} == {(0, 1, 1), (2, 1, 1)}
    assert torch.isfinite(log_p).all()
