"""The invariants hold for every way to get an index: random, k-means, M-step, penalty search and old bundles."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import pathdex
from pathdex.index.coordinate_descent import assign_paths
from pathdex.index.initialization import random_paths, residual_kmeans_paths
from pathdex.index.penalty import penalty_for_path_size
from pathdex.index.postings import Postings
from pathdex.index.scores import ScoreTable
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from tests.index.invariants import check_index, check_log_shares, check_paths, check_postings, check_trie

GOLDEN = Path(__file__).parents[1] / "golden"
DEEP_RETRIEVAL = [
    name
    for name, golden in json.loads((GOLDEN / "estimators.json").read_text()).items()
    if golden["estimator"] == DeepRetrieval.name
]


@st.composite
def sizes(draw: Any) -> dict[str, int]:
    num_nodes, depth = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    paths_per_item = draw(st.integers(1, min(4, num_nodes**depth)))
    return {"paths_per_item": paths_per_item, "num_nodes": num_nodes, "depth": depth}


def random_scores(num_items: int, candidate_paths: int, capacity: int, seed: int) -> ScoreTable:
    """Scored paths for most items; some rows are short, some are empty."""
    random = np.random.default_rng(seed)
    table = ScoreTable.empty(num_items, candidate_paths)
    scored = np.flatnonzero(random.random(num_items) < 0.8)
    codes = random.integers(0, capacity, (len(scored), candidate_paths))
    codes[random.random(codes.shape) < 0.2] = -1
    table.set_rows(scored, codes, random.random(codes.shape))
    return table


@settings(max_examples=50, deadline=None)
@given(sizes(), st.integers(1, 60), st.integers(0, 99))
def test_random_paths(size: dict[str, int], num_items: int, seed: int) -> None:
    check_index(random_paths(num_items, **size, seed=seed), size["num_nodes"], size["depth"])


def test_random_paths_in_a_structure_that_no_memory_holds() -> None:
    check_index(random_paths(500, 3, 1000, 6), 1000, 6)


@settings(max_examples=25, deadline=None)
@given(sizes(), st.integers(1, 60), st.integers(1, 4), st.booleans(), st.integers(0, 99))
def test_k_means_paths(size: dict[str, int], num_items: int, dim: int, equal: bool, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(num_items, dim))
    if equal:
        vectors[:] = vectors[0]
    paths = residual_kmeans_paths(vectors, **size, seed=seed, iterations=3, max_size=2 * num_items)
    check_index(paths, size["num_nodes"], size["depth"])


@settings(max_examples=50, deadline=None)
@given(sizes(), st.integers(1, 60), st.integers(1, 6), st.sampled_from([0.0, 0.01, 3.0]), st.integers(0, 99))
def test_paths_after_an_m_step(
    size: dict[str, int], num_items: int, candidate_paths: int, penalty: float, seed: int
) -> None:
    current, table, counts = problem(size, num_items, candidate_paths, seed)
    paths = assign_paths(table.codes, table.scores, counts, current, penalty=penalty, iterations=2, seed=seed)
    check_index(paths, size["num_nodes"], size["depth"])


@settings(max_examples=20, deadline=None)
@given(sizes(), st.integers(1, 60), st.integers(1, 6), st.floats(1, 20), st.integers(0, 99))
def test_paths_after_a_penalty_search(
    size: dict[str, int], num_items: int, candidate_paths: int, path_size: float, seed: int
) -> None:
    current, table, counts = problem(size, num_items, candidate_paths, seed)
    found = penalty_for_path_size(table.codes, table.scores, counts, current, path_size=path_size, iterations=2)
    check_index(found.paths, size["num_nodes"], size["depth"])


def problem(
    size: dict[str, int], num_items: int, candidate_paths: int, seed: int
) -> tuple[NDArray[np.int64], ScoreTable, NDArray[np.int64]]:
    capacity = size["num_nodes"] ** size["depth"]
    counts = np.random.default_rng(seed).integers(0, 20, num_items)
    return random_paths(num_items, **size, seed=seed), random_scores(num_items, candidate_paths, capacity, seed), counts


@pytest.mark.parametrize("name", DEEP_RETRIEVAL)
def test_golden_bundles(name: str) -> None:
    model = pathdex.load(GOLDEN / "bundles" / name)
    assert isinstance(model, DeepRetrieval)
    state, postings = model.model_state, model.postings
    check_paths(state.paths, postings.num_nodes, postings.depth)
    check_postings(postings, state.paths)
    check_log_shares(postings, state.log_shares, state.counts)
    check_trie(model.retriever.trie, postings)


def test_there_are_golden_bundles() -> None:
    assert len(DEEP_RETRIEVAL) >= 1


@pytest.mark.parametrize(
    "change",
    [
        {"starts": np.array([0, 1]), "ends": np.array([1, 3])},
        {"items": np.array([1, 0, 2], np.int32)},
        {"items": np.array([0, 0, 0], np.int32)},
        {"num_items": 4},
        {"prefixes": [np.array([0]), np.array([0, 2])]},
        {"children": [np.array([0, 1])]},
    ],
    ids=str,
)
def test_a_broken_index_is_noticed(change: dict[str, Any]) -> None:
    # K = 3, D = 1: path 1 holds items 0 and 1, path 2 holds item 2.
    paths = np.array([[1], [1], [2]])
    fields = vars(Postings.from_paths(paths, 3, 1))
    check_postings(Postings(**fields), paths)
    with pytest.raises(AssertionError):
        check_postings(Postings(**{**fields, **change}), paths)
