"""Postings by hand and by property."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.errors import DataError
from pathdex.index.initialization import random_paths
from pathdex.index.postings import Postings

# Three items on two paths each, K = 10, D = 2: item 0 on 12 and 47, item 1 on 12 and 13, item 2 on 13 and 80.
PATHS = [[12, 47], [13, 12], [80, 13]]


@pytest.fixture
def postings():
    return Postings.from_paths(PATHS, num_nodes=10, depth=2)


def test_items_are_listed_by_path(postings):
    assert postings.paths.tolist() == [12, 13, 47, 80]
    assert postings.sizes.tolist() == [2, 2, 1, 1]
    assert postings.items_on(12).tolist() == [0, 1]
    assert postings.items_on(13).tolist() == [1, 2]
    assert postings.items_on(80).tolist() == [2]
    assert postings.items_on(14).tolist() == []
    assert postings.items_on(99).tolist() == []
    assert postings.items.dtype == np.int32


def test_the_trie_holds_the_prefixes_in_use_and_their_children(postings):
    assert [layer.tolist() for layer in postings.prefixes] == [[0], [1, 4, 8], [12, 13, 47, 80]]
    assert [layer.tolist() for layer in postings.children] == [[0, 3], [0, 2, 3, 4]]


def test_gather_sums_the_probabilities_of_an_items_paths(postings):
    items, scores = postings.gather([12, 55, 13], np.log([0.5, 0.3, 0.25]))
    assert items.tolist() == [0, 1, 2]
    assert np.exp(scores) == pytest.approx([0.5, 0.75, 0.25])


def test_an_item_counts_by_its_share_of_a_paths_interactions(postings):
    counts = np.array([3, 0, 5, 1])[: postings.num_items]
    shares = postings.log_shares(counts)
    for path in postings.paths:
        items = postings.items_on(path)
        found, scores = postings.gather([path], [np.log(0.5)], shares)
        weights = counts[items] + 1
        assert found.tolist() == items.tolist()
        np.testing.assert_allclose(np.exp(scores), 0.5 * weights / weights.sum(), rtol=1e-5)


def test_gather_works_with_probabilities_that_underflow(postings):
    _, scores = postings.gather([12, 13], [-5000.0, -5000.0])
    assert scores == pytest.approx([-5000.0, -5000.0 + np.log(2), -5000.0])


def test_gather_of_no_paths_is_empty(postings):
    items, scores = postings.gather(np.array([], np.int64), [])
    assert len(items) == len(scores) == 0


def test_the_repr_is_short(postings):
    assert repr(postings) == "Postings(3 items on 4 paths of 2 x 10 nodes)"


@given(st.integers(1, 60), st.integers(1, 3), st.integers(2, 5), st.integers(1, 3), st.integers(0, 5))
def test_gathering_every_path_finds_every_item(num_items, paths_per_item, num_nodes, depth, seed):
    paths_per_item = min(paths_per_item, num_nodes**depth)
    paths = random_paths(num_items, paths_per_item, num_nodes, depth, seed)
    postings = Postings.from_paths(paths, num_nodes, depth)
    items, scores = postings.gather(postings.paths, np.zeros(len(postings)))
    assert sorted(items) == list(range(num_items))
    assert scores == pytest.approx(np.log(paths_per_item) * np.ones(num_items), abs=1e-6)


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([[1, 1]], "paths: item 0 has a path twice, the paths of an item must be distinct"),
        ([[100]], r"paths: holds 100, must stay below K\^D=100"),
        ([1, 2], r"paths: has shape \(2,\), must have shape \(any, any\)"),
        (np.empty((0, 2), np.int64), r"paths: has shape \(0, 2\), must hold at least one item"),
    ],
)
def test_invalid_paths_are_refused(paths, message):
    with pytest.raises(DataError, match=message):
        Postings.from_paths(paths, num_nodes=10, depth=2)


def test_an_invalid_query_is_refused(postings):
    with pytest.raises(DataError, match=r"log_probabilities: has shape .*one value for each of the 2 paths"):
        postings.gather([12, 13], [-1.0])
