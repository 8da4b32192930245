"""Scores of an item's paths against sums over all paths."""

import itertools

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pathdex.index.item_scores import score_item_paths
from pathdex.index.paths import decode_paths
from pathdex.kernels.structure import StructureWeights
from pathdex.model.structure import MLPStructure, path_log_probabilities

DIM = 4


def make(nodes: int, depth: int, items: int, samples: int, seed: int) -> tuple[MLPStructure, torch.Tensor]:
    """A random structure model and users (item, sample, dim)."""
    torch.manual_seed(seed)
    return MLPStructure(DIM, nodes, depth, 8, 3), 2 * torch.randn(items, samples, DIM)


def exact_scores(structure: MLPStructure, users: torch.Tensor) -> NDArray[np.float32]:
    """s[v, c] = sum_i p(c | x_i) of every path: (item, path)."""
    paths = torch.tensor(list(itertools.product(range(structure.num_nodes), repeat=structure.depth)))
    with torch.no_grad():
        each = path_log_probabilities(
            structure, users.flatten(0, 1), paths.expand(users.shape[0] * users.shape[1], -1, -1)
        )
    scores: NDArray[np.float32] = each.exp().view(*users.shape[:2], -1).sum(dim=1).numpy()
    return scores


def score(
    structure: MLPStructure, users: torch.Tensor, beam: int, keep: int, own: NDArray[np.int64], negligible: float
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    with torch.no_grad():
        sums = structure.begin(users).numpy()
    weights = StructureWeights.from_layers(*structure.layer_arrays())
    nodes = decode_paths(own, structure.num_nodes, structure.depth)
    return score_item_paths(sums, weights, beam, keep, nodes, negligible)


@settings(max_examples=25, deadline=None)
@given(
    nodes=st.integers(1, 6),
    depth=st.integers(1, 3),
    samples=st.integers(1, 60),
    keep=st.integers(1, 8),
    seed=st.integers(0, 99),
)
def test_a_beam_of_all_prefixes_gives_the_exact_sums(
    nodes: int, depth: int, samples: int, keep: int, seed: int
) -> None:
    structure, users = make(nodes, depth, 3, samples, seed)
    expected = exact_scores(structure, users)
    own = np.random.default_rng(seed).integers(0, nodes**depth, (3, 2))
    codes, scores, own_scores = score(structure, users, nodes**depth, keep, own, negligible=0.0)
    found = min(keep, nodes**depth)
    assert (codes[:, found:] == -1).all()
    assert (scores[:, found:] == 0).all()
    np.testing.assert_allclose(scores[:, :found], -np.sort(-expected, axis=1)[:, :found], rtol=1e-3)
    np.testing.assert_allclose(np.take_along_axis(expected, codes[:, :found], axis=1), scores[:, :found], rtol=1e-3)
    np.testing.assert_allclose(own_scores, np.take_along_axis(expected, own, axis=1), rtol=1e-3)


@settings(max_examples=25, deadline=None)
@given(beam=st.integers(1, 8), samples=st.integers(1, 60), seed=st.integers(0, 99))
def test_skipped_samples_only_lower_a_score(beam: int, samples: int, seed: int) -> None:
    structure, users = make(5, 3, 3, samples, seed)
    expected = exact_scores(structure, users)
    codes, scores, _ = score(structure, users, beam, 6, np.zeros((3, 1), np.int64), negligible=0.5)
    known = codes >= 0
    exact = np.take_along_axis(expected, np.maximum(codes, 0), axis=1)
    assert (scores <= 1.001 * exact)[known].all()
    assert (np.diff(scores, axis=1) <= 0).all()


def test_one_sample_and_a_beam_of_one_are_greedy() -> None:
    structure, users = make(4, 3, 1, 1, 0)
    codes, scores, _ = score(structure, users, 1, 1, np.zeros((1, 1), np.int64), negligible=0.0)
    state, p, nodes = structure.begin(users[0]), 1.0, []
    with torch.no_grad():
        for layer in range(3):
            shares = structure.logits(state, layer).softmax(-1)[0]
            nodes.append(int(shares.argmax()))
            p *= float(shares.max())
            if layer < 2:
                state = structure.advance(state, layer, torch.tensor([nodes[-1]]))
    assert decode_paths(codes, 4, 3).tolist() == [[nodes]]
    np.testing.assert_allclose(scores, [[p]], rtol=1e-4)
