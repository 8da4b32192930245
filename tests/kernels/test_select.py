"""Selections of the k largest by bisection against sorting."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from pathdex.kernels.gemm import LANES
from pathdex.kernels.select import (
    RANK_SORT,
    best_items,
    count_above,
    find_above,
    find_sums_above,
    new_keys,
    order_keys,
    score_of,
    select_first,
    sort_descending,
    top_k_bound,
    top_k_in_order,
    top_k_items,
)

# Few distinct values make ties common.
numbers = st.sampled_from([-np.inf, -2.0, -0.0, 0.0, 0.5, 3.5, np.inf]) | st.floats(-1e3, 1e3, width=32)
scores_of_all = st.lists(numbers, min_size=1, max_size=70)


@njit
def count_in(keys: np.ndarray, bound: int) -> int:
    return count_above(keys, np.int32(bound))


@njit
def positions_in(keys: np.ndarray, bound: int) -> np.ndarray:
    positions = np.empty(len(keys), np.int64)
    return positions[: find_above(keys, np.int32(bound), positions)]


@njit
def sums_in(values: np.ndarray, shift: float, bound: float) -> np.ndarray:
    positions = np.empty(len(values), np.int64)
    return positions[: find_sums_above(values, np.float32(shift), np.float32(bound), positions)]


def keys_of(scores: np.ndarray) -> np.ndarray:
    return order_keys(scores, len(scores), new_keys(len(scores)))


@settings(max_examples=100, deadline=None)
@given(scores_of_all)
def test_keys_have_the_order_of_the_scores(values: list[float]) -> None:
    scores = np.array(values, np.float32)
    keys = keys_of(scores)
    assert len(keys) % LANES == 0
    np.testing.assert_array_equal(
        np.sign(keys[: len(scores), None] - keys[: len(scores)].astype(np.int64)),
        [[(one > other) - (one < other) for other in scores.tolist()] for one in scores.tolist()],
    )
    assert [score_of(key) for key in keys[: len(scores)]] == scores.tolist()


def test_counting_and_finding_by_hand() -> None:
    keys = np.arange(2 * LANES, dtype=np.int32)
    assert count_in(keys, 29) == 2
    assert positions_in(keys, 29).tolist() == [30, 31]
    assert positions_in(keys, 31).tolist() == []
    values = np.zeros(LANES, np.float32)
    values[[3, 9]] = 2.0, np.nan
    assert sums_in(values, 1.0, 2.5).tolist() == [3]


@settings(max_examples=100, deadline=None)
@given(scores_of_all, st.data())
def test_the_bound_separates_the_k_largest(values: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values)))
    scores = np.array(values, np.float32)
    keys = keys_of(scores)
    bound, ties = top_k_bound(keys, len(scores), k)
    above, equal = (keys > bound).sum(), (keys[: len(values)] == bound).sum()
    assert above + ties == k
    assert 0 <= ties <= equal
    positions = np.empty(len(keys), np.int64)
    select_first(keys, len(scores), k, positions)
    assert positions[:k].tolist() == np.sort(np.argsort(-scores, kind="stable")[:k]).tolist()


@settings(max_examples=100, deadline=None)
@given(scores_of_all, st.integers(1, 80))
def test_the_best_in_order_equal_a_stable_sort(values: list[float], k: int) -> None:
    scores = np.array(values, np.float32)
    found = top_k_in_order(scores, len(scores), k, new_keys(len(scores)))
    assert found.tolist() == np.argsort(-scores, kind="stable")[:k].tolist()


@settings(max_examples=100, deadline=None)
@given(scores_of_all, st.integers(1, 80), st.integers(0, 99))
def test_equal_scores_go_by_item(values: list[float], k: int, seed: int) -> None:
    items = np.random.default_rng(seed).permutation(len(values))
    scores = np.array(values, np.float32)
    expected = sorted(range(len(values)), key=lambda position: (-scores[position], items[position]))[:k]
    assert sorted(top_k_items(items, scores, k).tolist()) == sorted(expected)
    best, best_scores = best_items(items, scores.copy(), k)
    assert best.tolist() == items[expected].tolist()
    assert best_scores.tolist() == scores[expected].tolist()


def test_nan_is_the_worst_score() -> None:
    items, scores = best_items(np.array([7, 3, 5]), np.array([np.nan, 1, -np.inf], np.float32), 3)
    assert items.tolist() == [3, 5, 7]
    assert scores.tolist() == [1.0, -np.inf, -np.inf]


def test_few_and_many_values_are_sorted() -> None:
    for count in (0, 1, RANK_SORT, RANK_SORT + 1, 1000):
        values = np.random.default_rng(count).permutation(10 * count)[:count] - 2 * count
        assert sort_descending(values).tolist() == sorted(values.tolist(), reverse=True)
