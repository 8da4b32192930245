"""Eq. (1) and Algorithm 1 against enumeration."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.model.beam import beam_search
from pathdex.model.structure import STRUCTURES, LayerNetwork, path_log_probabilities

DIM = 5


def make(kind: str, nodes: int, depth: int, seed: int = 0) -> LayerNetwork:
    torch.manual_seed(seed)
    return STRUCTURES[kind](DIM, nodes, depth, 8, 3)


def all_paths(nodes: int, depth: int) -> torch.Tensor:
    return torch.tensor(list(itertools.product(range(nodes), repeat=depth)))


def greedy(structure: LayerNetwork, user: torch.Tensor) -> list[int]:
    """The path of the likeliest node in each layer."""
    state, path = structure.begin(user[None]), []
    for layer in range(structure.depth):
        node = structure.logits(state, layer).argmax(dim=-1)
        path.append(int(node))
        if layer + 1 < structure.depth:
            state = structure.advance(state, layer, node)
    return path


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_probabilities_of_all_paths_sum_to_one(kind: str, depth: int) -> None:
    structure = make(kind, 4, depth)
    users = torch.randn(6, DIM)
    paths = all_paths(4, depth).expand(6, -1, -1)
    total = path_log_probabilities(structure, users, paths).exp().sum(dim=1)
    torch.testing.assert_close(total, torch.ones(6))


def test_mlp_layer_input_is_the_user_and_all_previous_nodes_concatenated() -> None:
    structure = make("mlp", 4, 3)
    user, nodes = torch.randn(DIM), [2, 1]
    state = structure.begin(user[None])
    for layer, node in enumerate(nodes):
        state = structure.advance(state, layer, torch.tensor([node]))
    hidden = slice(2 * structure.hidden, 3 * structure.hidden)
    weight = torch.cat(
        [
            structure.user.weight[hidden],
            structure.inputs[0].weight.unflatten(0, (2, structure.hidden))[1],
            structure.inputs[1].weight.unflatten(0, (1, structure.hidden))[0],
        ],
        dim=1,
    )
    inputs = torch.cat([user, structure.nodes[0][2], structure.nodes[1][1]])
    expected = structure.outputs[2](torch.relu(weight @ inputs + structure.user.bias[hidden]))
    torch.testing.assert_close(structure.logits(state, 2)[0], expected)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_beam_of_one_is_greedy(kind: str) -> None:
    structure = make(kind, 5, 3)
    users = torch.randn(7, DIM)
    nodes, _ = beam_search(structure, users, 1)
    assert nodes[:, 0].tolist() == [greedy(structure, user) for user in users]


@settings(max_examples=20, deadline=None)
@given(
    kind=st.sampled_from(sorted(STRUCTURES)), nodes=st.integers(2, 4), depth=st.integers(1, 3), seed=st.integers(0, 99)
)
def test_beam_of_all_paths_is_exhaustive(kind: str, nodes: int, depth: int, seed: int) -> None:
    structure = make(kind, nodes, depth, seed)
    users = torch.randn(3, DIM)
    found, scores = beam_search(structure, users, nodes**depth)
    expected = path_log_probabilities(structure, users, all_paths(nodes, depth).expand(3, -1, -1))
    torch.testing.assert_close(scores, expected.sort(dim=1, descending=True).values)
    torch.testing.assert_close(scores, path_log_probabilities(structure, users, found))


@settings(max_examples=20, deadline=None)
@given(
    used=st.sets(st.integers(0, 26), min_size=1, max_size=27),
    beam=st.integers(1, 27),
    seed=st.integers(0, 99),
)
def test_beam_with_prefixes_returns_only_paths_in_use(used: set[int], beam: int, seed: int) -> None:
    structure = make("mlp", 3, 3, seed)
    users = torch.randn(2, DIM)
    codes = torch.tensor(sorted(used))
    prefixes = [torch.unique(codes // 9), torch.unique(codes // 3), codes]
    nodes, scores = beam_search(structure, users, beam, prefixes)
    found = (nodes * torch.tensor([9, 3, 1])).sum(dim=2)
    real = scores.isfinite()
    assert set(found[real].tolist()) <= used
    if beam >= len(used):
        assert all(sorted(row[ok].tolist()) == sorted(used) for row, ok in zip(found, real, strict=True))
