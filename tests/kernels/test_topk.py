"""Selections of the k largest against sorting."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.topk import heap_push, kth_largest, select_top_k, top_k_threshold

# Few distinct values make ties common.
tied = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5]), min_size=1, max_size=60)


@settings(max_examples=100, deadline=None)
@given(tied, st.data())
def test_the_kth_largest_equals_sorting(values: list[float], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(values)))
    k = data.draw(st.integers(1, count))
    array = np.array(values, np.float32)
    best = sorted(values[:count], reverse=True)
    assert kth_largest(array, count, k) == best[k - 1]
    assert sorted(array[:k].tolist(), reverse=True) == best[:k]
    assert array[count:].tolist() == values[count:]
    assert top_k_threshold(array, count, k) == (best[k - 1], best[:k].count(best[k - 1]))


def test_a_threshold_by_hand() -> None:
    assert top_k_threshold(np.array([3, 1, 2, 2, 2], np.float32), 5, 3) == (2.0, 2)


@settings(max_examples=100, deadline=None)
@given(tied, st.integers(1, 70))
def test_selection_equals_a_stable_sort_of_the_positive_values(values: list[float], k: int) -> None:
    array = np.array(values, np.float32)
    chosen = np.empty(len(values), np.int64)
    order = [position for position in np.argsort(-array, kind="stable") if array[position] > 0][:k]
    for floor in {0.0, array[order[-1]] if order else 9.0}:
        found = select_top_k(array, len(array), k, np.float32(floor), np.empty_like(array), chosen)
        assert chosen[:found].tolist() == order


@settings(max_examples=100, deadline=None)
@given(tied, st.integers(1, 8))
def test_a_heap_keeps_the_best_with_the_worst_on_top(values: list[float], capacity: int) -> None:
    items, scores = np.empty(capacity, np.int64), np.empty(capacity, np.float32)
    size = 0
    for item, score in enumerate(values):
        size = heap_push(items, scores, size, item, score)
    best = sorted(range(len(values)), key=lambda item: (-values[item], item))[:capacity]
    assert sorted(items[:size].tolist()) == sorted(best)
    assert items[0] == best[-1]
    assert scores[:size].tolist() == [values[item] for item in items[:size]]


def test_nan_is_the_worst_score_of_a_heap() -> None:
    items, scores = np.empty(2, np.int64), np.empty(2, np.float32)
    size = 0
    for item, score in enumerate([np.nan, 1.0, 2.0]):
        size = heap_push(items, scores, size, item, score)
    assert sorted(items.tolist()) == [1, 2]
