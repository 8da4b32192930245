"""Postings by hand and by property."""

import dataclasses

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
    assert postings.items_on([13, 14, 12]).tolist() == [1, 2, 0, 1]
    assert postings.items_on(np.empty(0, np.int64)).tolist() == []
    assert postings.items.dtype == np.int32


def test_the_trie_holds_the_prefixes_in_use_and_their_children(postings):
    assert [layer.tolist() for layer in postings.prefixes] == [[0], [1, 4, 8], [12, 13, 47, 80]]
    assert [layer.tolist() for layer in postings.children] == [[0, 3], [0, 2, 3, 4]]


def test_an_item_counts_by_its_share_of_a_paths_interactions(postings):
    counts = np.array([3, 0, 5, 1])[: postings.num_items]
    shares = postings.log_shares(counts)
    for path in postings.paths:
        weights = counts[postings.items_on(path)] + 1
        position = postings.paths.tolist().index(path)
        own = shares[postings.offsets[position] : postings.offsets[position + 1]]
        np.testing.assert_allclose(np.exp(own), weights / weights.sum(), rtol=1e-5)


def test_the_repr_is_short(postings):
    assert repr(postings) == "Postings(3 items on 4 paths of 2 x 10 nodes)"


@given(st.integers(1, 60), st.integers(1, 3), st.integers(2, 5), st.integers(1, 3), st.integers(0, 5))
def test_every_item_is_on_its_paths(num_items, paths_per_item, num_nodes, depth, seed):
    paths_per_item = min(paths_per_item, num_nodes**depth)
    paths = random_paths(num_items, paths_per_item, num_nodes, depth, seed)
    postings = Postings.from_paths(paths, num_nodes, depth)
    items = postings.items_on(postings.paths)
    assert np.bincount(items).tolist() == [paths_per_item] * num_items


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


def test_items_without_paths_are_on_none() -> None:
    postings = Postings.from_paths([[12, 47], [-1, -1], [80, 12]], num_nodes=10, depth=2)
    assert postings.items_on(postings.paths).tolist() == [0, 2, 0, 2]
    assert (postings.num_items, postings.num_entries) == (3, 4)
    empty = Postings.from_paths([[-1, -1]], num_nodes=10, depth=2)
    assert len(empty) == 0
    assert [layer.tolist() for layer in empty.prefixes] == [[0], [], []]
    assert empty.items_on([3, 4]).tolist() == []
    assert empty.offsets.tolist() == [0]
    with pytest.raises(DataError, match="item 0 has 1 of 2 paths, must have all or none"):
        Postings.from_paths([[12, -1]], num_nodes=10, depth=2)


def test_segments_are_packed_in_the_order_of_the_paths(postings) -> None:
    shares = np.arange(6, dtype=np.float32)
    same, unchanged = postings.packed(shares)
    assert same is postings
    assert unchanged is shares
    # The items of path 12 moved to the end.
    items = np.concatenate([postings.items, postings.items_on(12)])
    starts, ends = postings.starts.copy(), postings.ends.copy()
    starts[0], ends[0] = 6, 8
    moved = dataclasses.replace(postings, items=items, starts=starts, ends=ends)
    assert not moved.is_packed
    packed, log_shares = moved.packed(np.arange(8, dtype=np.float32))
    assert packed.items.tolist() == postings.items.tolist()
    assert packed.offsets.tolist() == postings.offsets.tolist()
    assert log_shares.tolist() == [6, 7, 2, 3, 4, 5]
