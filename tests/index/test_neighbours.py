"""Nearest items by hand and against dense matrices."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pathdex.index import neighbours as module
from pathdex.index.neighbours import nearest_items, rows_of, without_hidden
from pathdex.kernels.neighbours import Neighbours

# Users 0 and 1 have items 0 and 1, user 2 has items 1 and 2; item 3 has no user.
MATRIX = sparse.csr_array(np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0]], np.float32))


def rows(near):
    return [
        list(zip(near.items[a:b].tolist(), near.similarities[a:b].tolist(), strict=True))
        for a, b in zip(near.offsets[:-1], near.offsets[1:], strict=True)
    ]


def by_item(near):
    return [dict(row) for row in rows(near)]


def test_similarities_by_hand():
    cosine = 2 / math.sqrt(2 * 3), 1 / math.sqrt(3)
    found = by_item(nearest_items(MATRIX, 3, threads=1))
    assert found[0] == pytest.approx({1: cosine[0]})
    assert found[1] == pytest.approx({0: cosine[0], 2: cosine[1]})
    assert found[2] == pytest.approx({1: cosine[1]})
    assert found[3] == {}


def test_shrinkage_is_added_to_the_denominator():
    assert by_item(nearest_items(MATRIX, 1, shrinkage=2.0))[0] == pytest.approx({1: 2 / (math.sqrt(6) + 2)})


def test_k_limits_the_neighbours_to_the_most_similar():
    assert by_item(nearest_items(MATRIX, 1))[1].keys() == {0}


def test_lists_of_some_items_are_those_of_all() -> None:
    every, some = rows(nearest_items(MATRIX, 2)), rows(nearest_items(MATRIX, 2, items=np.array([2, 0])))
    assert some == [every[2], every[0]]
    assert rows(nearest_items(MATRIX, 2, items=np.empty(0, np.int64))) == []


def test_rows_are_the_columns_that_are_not_empty():
    assert [row.tolist() for row in rows_of(MATRIX)] == [[0, 1], [0, 1], [1, 2]]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 9), st.sampled_from([0.0, 1.0]), st.integers(0, 99))
def test_any_blocks_and_threads_equal_the_dense_matrix(num_users, num_items, k, shrinkage, seed):
    random = np.random.default_rng(seed)
    dense = (random.random((num_users, num_items)) < 0.4).astype(np.float32)
    norms = np.sqrt((dense**2).sum(axis=0))
    similarity = dense.T @ dense / np.maximum(np.outer(norms, norms) + shrinkage, 1e-12)
    np.fill_diagonal(similarity, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ITEMS_PER_BLOCK", 2)
        patch.setattr(module, "PAIRS_PER_BLOCK", 5)
        found = rows(nearest_items(sparse.csr_array(dense), k, shrinkage=shrinkage, threads=2))
    for item, row in enumerate(found):
        expected = np.sort(similarity[item][similarity[item] > 0])[::-1][:k]
        assert sorted((value for _, value in row), reverse=True) == pytest.approx(expected.tolist(), rel=1e-5)
        assert all(value == pytest.approx(similarity[item, other], rel=1e-5) for other, value in row)


def test_hidden_items_leave_all_lists() -> None:
    # Item 0 is near 1 and 2, item 1 near 0, item 2 near 1.
    lists = Neighbours(np.array([0, 2, 3, 4]), np.array([1, 2, 0, 1], np.int32), np.arange(4, dtype=np.float32))
    left = without_hidden(lists._replace(hidden=np.array([False, True, False, True])), 4)
    assert left.offsets.tolist() == [0, 1, 1, 1, 1]
    assert left.items.tolist() == [2]
    assert left.similarities.tolist() == [1]
    assert without_hidden(lists, 5).offsets.tolist() == [0, 2, 3, 4, 4, 4]
