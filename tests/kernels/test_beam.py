"""The compiled beam against the model's, on random models."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.index.initialization import random_paths
from pathdex.index.paths import decode_paths, encode_paths
from pathdex.index.postings import Postings
from pathdex.kernels.beam import BLOCK, Trie, beam_search, layer_log_probabilities
from pathdex.kernels.structure import StructureWeights
from pathdex.model.beam import beam_search as model_beam_search
from pathdex.model.structure import STRUCTURES, MLPStructure, RecurrentStructure, path_log_probabilities

DIM = 5


def random_structure(kind: str, nodes: int, depth: int, seed: int) -> MLPStructure | RecurrentStructure:
    torch.manual_seed(seed)
    structure = STRUCTURES[kind](DIM, nodes, depth, 8, 3)
    for parameter in structure.parameters():
        parameter.data.normal_(0, 1)
    return structure


def packed(structure: torch.nn.Module) -> StructureWeights:
    return StructureWeights.pack({name: value.numpy() for name, value in structure.state_dict().items()})


def trie_of(postings: Postings) -> Trie:
    return Trie.pack(postings.prefixes, postings.children, postings.num_nodes)


@pytest.mark.parametrize("kind", sorted(STRUCTURES))
@settings(max_examples=30, deadline=None)
@given(
    nodes=st.integers(2, 20),
    depth=st.integers(1, 4),
    width=st.integers(1, 40),
    items=st.integers(1, 30),
    seed=st.integers(0, 1000),
)
def test_a_beam_finds_what_the_models_beam_finds(
    kind: str, nodes: int, depth: int, width: int, items: int, seed: int
) -> None:
    structure = random_structure(kind, nodes, depth, seed)
    postings = Postings.from_paths(random_paths(items, 1, nodes, depth, seed), nodes, depth)
    users = torch.randn(3, DIM)
    prefixes = [torch.from_numpy(codes) for codes in postings.prefixes[1:]]
    expected, scores = model_beam_search(structure, users, width, prefixes)
    for user, paths, totals in zip(users, expected, scores, strict=True):
        places, log_p = beam_search(
            packed(structure),
            trie_of(postings),
            user.numpy(),
            width,
            depth,
        )
        followed = torch.isfinite(totals)
        codes = encode_paths(paths[followed].numpy(), nodes)
        assert len(places) == len(codes)
        np.testing.assert_allclose(log_p, totals[followed].numpy(), rtol=1e-4, atol=1e-4)
        # Paths whose probabilities differ by rounding alone may change places.
        assert abs(len(set(postings.paths[places].tolist()) ^ set(codes.tolist()))) <= 2


def test_a_beam_of_one_is_greedy() -> None:
    structure = random_structure("mlp", 4, 2, 0)
    postings = Postings.from_paths(np.arange(16)[:, None], 4, 2)
    user = torch.randn(1, DIM)
    places, _ = beam_search(packed(structure), trie_of(postings), user[0].numpy(), 1, 2)
    first = int(structure.logits(structure.begin(user), 0).argmax())
    second = int(structure.logits(structure.advance(structure.begin(user), 0, torch.tensor([first])), 1).argmax())
    assert postings.paths[places].tolist() == [first * 4 + second]


def test_a_beam_can_stop_at_a_prefix() -> None:
    structure = random_structure("mlp", 3, 3, 1)
    postings = Postings.from_paths(np.array([[0], [5], [26]]), 3, 3)
    places, log_p = beam_search(
        packed(structure),
        trie_of(postings),
        np.zeros(DIM, np.float32),
        5,
        1,
    )
    expected = structure.logits(structure.begin(torch.zeros(1, DIM)), 0).log_softmax(1)[0].detach().numpy()
    assert sorted(postings.prefixes[1][places]) == [0, 2]
    np.testing.assert_allclose(log_p, expected[postings.prefixes[1][places]], rtol=1e-5)


@pytest.mark.parametrize("kind", sorted(STRUCTURES))
@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("count", [1, 20, 2 * BLOCK + 1])
def test_layers_multiply_to_the_probability_of_a_path(kind: str, depth: int, count: int) -> None:
    structure = random_structure(kind, 3, depth, 2)
    nodes = decode_paths(np.sort(np.random.default_rng(0).integers(0, 3**depth, count)), 3, depth)
    user = torch.randn(1, DIM)
    got = layer_log_probabilities(packed(structure), user[0].numpy(), nodes)
    expected = path_log_probabilities(structure, user, torch.from_numpy(nodes)[None])[0].detach().numpy()
    np.testing.assert_allclose(got.sum(axis=1), expected, rtol=1e-4, atol=1e-5)
