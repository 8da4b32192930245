"""The compiled beam search against that of the model, on random models."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.index.initialization import random_paths
from pathdex.index.paths import decode_paths, encode_paths
from pathdex.index.postings import Postings
from pathdex.kernels.beam import PATH_BLOCK, beam_search, layer_log_probabilities
from pathdex.model.beam import beam_search as model_beam_search
from pathdex.model.structure import STRUCTURES, path_log_probabilities
from tests.kernels.structures import DIM, packed, random_structure, trie_of


@pytest.mark.parametrize("kind", sorted(STRUCTURES))
@settings(max_examples=30, deadline=None)
@given(
    nodes=st.integers(2, 20),
    depth=st.integers(1, 4),
    beam=st.integers(1, 40),
    items=st.integers(1, 30),
    seed=st.integers(0, 1000),
)
def test_the_compiled_beam_equals_that_of_the_model(
    kind: str, nodes: int, depth: int, beam: int, items: int, seed: int
) -> None:
    structure = random_structure(kind, nodes, depth, seed)
    postings = Postings.from_paths(random_paths(items, 1, nodes, depth, seed), nodes, depth)
    users = torch.randn(3, DIM)
    prefixes = [torch.from_numpy(codes) for codes in postings.prefixes[1:]]
    expected, scores = model_beam_search(structure, users, beam, prefixes)
    for user, paths, totals in zip(users, expected, scores, strict=True):
        positions, log_p = beam_search(
            packed(structure),
            trie_of(postings),
            user.numpy(),
            beam,
            depth,
        )
        followed = torch.isfinite(totals)
        codes = encode_paths(paths[followed].numpy(), nodes)
        assert len(positions) == len(codes)
        np.testing.assert_allclose(log_p, totals[followed].numpy(), rtol=1e-4, atol=1e-4)
        # Paths whose probabilities differ by rounding alone may change places.
        assert abs(len(set(postings.paths[positions].tolist()) ^ set(codes.tolist()))) <= 2


def test_a_beam_of_one_is_greedy() -> None:
    structure = random_structure("mlp", 4, 2, 0)
    postings = Postings.from_paths(np.arange(16)[:, None], 4, 2)
    user = torch.randn(1, DIM)
    positions, _ = beam_search(packed(structure), trie_of(postings), user[0].numpy(), 1, 2)
    first = int(structure.logits(structure.begin(user), 0).argmax())
    second = int(structure.logits(structure.advance(structure.begin(user), 0, torch.tensor([first])), 1).argmax())
    assert postings.paths[positions].tolist() == [first * 4 + second]


def test_a_beam_can_stop_at_a_prefix() -> None:
    structure = random_structure("mlp", 3, 3, 1)
    postings = Postings.from_paths(np.array([[0], [5], [26]]), 3, 3)
    positions, log_p = beam_search(
        packed(structure),
        trie_of(postings),
        np.zeros(DIM, np.float32),
        5,
        1,
    )
    expected = structure.logits(structure.begin(torch.zeros(1, DIM)), 0).log_softmax(1)[0].detach().numpy()
    assert sorted(postings.prefixes[1][positions]) == [0, 2]
    np.testing.assert_allclose(log_p, expected[postings.prefixes[1][positions]], rtol=1e-5)


@pytest.mark.parametrize("kind", sorted(STRUCTURES))
@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("count", [1, 20, 2 * PATH_BLOCK + 1])
def test_layers_multiply_to_the_probability_of_a_path(kind: str, depth: int, count: int) -> None:
    structure = random_structure(kind, 3, depth, 2)
    nodes = decode_paths(np.sort(np.random.default_rng(0).integers(0, 3**depth, count)), 3, depth)
    user = torch.randn(1, DIM)
    got = layer_log_probabilities(packed(structure), user[0].numpy(), nodes)
    expected = path_log_probabilities(structure, user, torch.from_numpy(nodes)[None])[0].detach().numpy()
    np.testing.assert_allclose(got.sum(axis=1), expected, rtol=1e-4, atol=1e-5)


def test_a_trie_by_hand() -> None:
    # K = 10, D = 2: paths 12, 13, 47. Nodes: root 0; prefixes 1 and 4 are nodes 1 and 2; the paths are nodes 3, 4, 5.
    trie = trie_of(Postings.from_paths(np.array([[12], [13], [47]]), 10, 2))
    assert trie.first_child.tolist() == [1, 3, 5, 6]
    assert trie.label.tolist() == [0, 1, 4, 2, 3, 7]
    assert trie.levels.tolist() == [0, 1, 3, 6]


@pytest.mark.parametrize("kind", sorted(STRUCTURES))
def test_a_beam_of_all_paths_is_exhaustive(kind: str) -> None:
    structure = random_structure(kind, 4, 3, 5)
    postings = Postings.from_paths(np.arange(64)[:, None], 4, 3)
    user = np.random.default_rng(0).normal(size=DIM).astype(np.float32)
    positions, log_p = beam_search(packed(structure), trie_of(postings), user, 64, 3)
    every = layer_log_probabilities(packed(structure), user, decode_paths(postings.paths, 4, 3)).sum(axis=1)
    assert sorted(positions.tolist()) == list(range(64))
    np.testing.assert_allclose(log_p, every[positions], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.exp(log_p).sum(), 1.0, rtol=1e-4)
    assert (np.diff(log_p) <= 0).all()
