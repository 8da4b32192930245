"""Residual k-means against exhaustive search, and on vectors with known clusters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.index.residual_kmeans import fit_codebooks, nearest, nearest_codes
from tests.index.vectors import clustered


def test_a_beam_of_all_codes_finds_the_nearest():
    random = np.random.default_rng(2)
    vectors, codebooks = random.normal(size=(50, 4)), random.normal(size=(2, 5, 4))
    codes = nearest_codes(vectors.astype(np.float32), codebooks.astype(np.float32), beam=25)
    every = codebooks[0][:, None] + codebooks[1][None]  # node 1, node 2, dim
    distances = ((vectors[:, None] - every.reshape(25, 4)) ** 2).sum(axis=2)
    found = np.take_along_axis(distances, codes, axis=1)
    assert found == pytest.approx(np.sort(distances, axis=1), abs=1e-4)


def test_every_layer_shrinks_the_residuals():
    vectors = clustered(dim=8).astype(np.float32)
    codebooks = fit_codebooks(vectors, 8, 3, 10, np.random.default_rng(0))
    residual = vectors
    spread = [float((residual**2).sum())]
    for centroids in codebooks:
        residual = residual - centroids[nearest(residual, centroids)]
        spread.append(float((residual**2).sum()))
    assert spread == sorted(spread, reverse=True)
    assert spread[-1] < 0.05 * spread[0]


def test_nearest_centroids_by_hand():
    centroids = np.array([[0, 0], [10, 0], [0, 10]], np.float32)
    assert nearest(np.array([[1, 1], [9, 2], [1, 7]], np.float32), centroids).tolist() == [0, 1, 2]


def test_a_beam_of_one_is_greedy():
    codebooks = np.array([[[0, 0], [10, 0]], [[0, 0], [0, 1]]], np.float32)
    vectors = np.array([[9, 1], [1, 0.2], [10, 0]], np.float32)
    assert nearest_codes(vectors, codebooks, beam=1).tolist() == [[0b11], [0b00], [0b10]]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 40), st.integers(0, 99))
def test_codes_are_distinct_and_nearest_first(num_nodes, depth, beam, seed):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(7, 3)).astype(np.float32)
    codebooks = random.normal(size=(depth, num_nodes, 3)).astype(np.float32)
    codes = nearest_codes(vectors, codebooks, beam)
    assert codes.shape == (7, min(beam, num_nodes**depth))
    for vector, row in zip(vectors, codes, strict=True):
        assert len(set(row.tolist())) == len(row)
        sums = sum(codebooks[layer][row // num_nodes ** (depth - 1 - layer) % num_nodes] for layer in range(depth))
        assert (np.diff(((vector - sums) ** 2).sum(axis=1)) > -1e-4).all()


def test_k_means_finds_the_centres_of_separated_clusters():
    vectors = clustered(clusters=4, items=200, dim=3).astype(np.float32)
    codebook = fit_codebooks(vectors, 12, 1, 20, np.random.default_rng(0))[0]
    centres = vectors.reshape(4, 200, 3).mean(axis=1)
    distances = np.linalg.norm(centres[:, None] - codebook[None], axis=2).min(axis=1)
    assert distances == pytest.approx(np.zeros(4), abs=2.0)  # the clusters are 20 apart
