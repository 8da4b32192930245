"""Gathering, limiting and reranking candidates by hand and against dictionaries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.candidates import (
    ALL_ITEMS,
    NO_COMPACT,
    NO_ITEMS,
    PathItems,
    gather_items,
    most_probable,
    rerank,
)
from pathdex.kernels.layout import as_readonly

# Path 0 holds items 0 and 1, path 1 items 1 and 2, path 2 item 3; each item has the same share of its path.
ON_PATHS = PathItems.pack(
    np.array([0, 2, 4]),
    np.array([2, 4, 5]),
    np.array([0, 1, 1, 2, 3], np.int32),
    np.log([0.5, 0.5, 0.5, 0.5, 1.0]).astype(np.float32),
)


def gather(
    positions: list[int], p: list[float], exclude: list[int] | None = None, mask: list[bool] | None = None
) -> dict[int, float]:
    items, log_p = gather_items(
        ON_PATHS,
        np.array(positions, np.int64),
        np.log(np.array(p, np.float32)),
        NO_ITEMS if exclude is None else as_readonly(np.array(exclude), np.int32),
        ALL_ITEMS if mask is None else as_readonly(np.array(mask), np.bool_),
        NO_COMPACT,
    )
    assert len(set(items.tolist())) == len(items)
    return dict(zip(items.tolist(), np.exp(log_p).tolist(), strict=True))


def test_an_item_on_two_paths_gets_the_sum() -> None:
    assert gather([1, 0], [0.4, 0.2]) == pytest.approx({1: 0.3, 2: 0.2, 0: 0.1})
    assert list(gather([1, 0], [0.4, 0.2])) == [1, 2, 0]  # in the order of their first path


def test_probabilities_may_underflow() -> None:
    low = np.full(2, -5000.0, np.float32)
    items, log_p = gather_items(ON_PATHS, np.array([0, 1]), low, NO_ITEMS, ALL_ITEMS, NO_COMPACT)
    assert items.tolist() == [0, 1, 2]
    assert log_p == pytest.approx([-5000.0 + np.log(0.5), -5000.0, -5000.0 + np.log(0.5)])


def test_the_first_path_may_be_the_least_probable() -> None:
    for low in (-1.0, -30.0, -50.0, -5000.0):
        log_p = np.array([low, 0.0], np.float32)
        items, found = gather_items(ON_PATHS, np.array([0, 1]), log_p, NO_ITEMS, ALL_ITEMS, NO_COMPACT)
        assert items.tolist() == [0, 1, 2]
        assert found[1] == pytest.approx(np.logaddexp(low, 0.0) + np.log(0.5), rel=1e-5)


def test_excluded_and_masked_items_are_missing() -> None:
    assert gather([0, 1, 2], [0.2, 0.4, 0.4], exclude=[1, 3, 1]) == pytest.approx({0: 0.1, 2: 0.2})
    assert gather([0, 1, 2], [0.2, 0.4, 0.4], mask=[True, False, False, True]) == pytest.approx({0: 0.1, 3: 0.4})
    assert gather([], []) == {}


def test_the_most_probable_items_stay_and_ties_go_by_item() -> None:
    items, kept = most_probable(np.array([5, 3, 9, 1]), np.array([-1, -2, -2, -2], np.float32), 3)
    assert sorted(items.tolist()) == [1, 3, 5]
    assert sorted(kept.tolist()) == [-2.0, -2.0, -1.0]


def test_a_score_is_the_inner_product_the_bias_and_the_prior() -> None:
    # Rows: [input vector | output vector | bias].
    table = as_readonly(np.array([[9, 9, 1, 0, 0.5], [9, 9, 0, 1, 0.0], [9, 9, 1, 1, 0.0]]))
    user, prior = np.array([2, 3], np.float32), np.array([0, 0, -1], np.float32)
    items, scores = rerank(table, NO_COMPACT, user, np.arange(3), prior, 3)
    assert items.tolist() == [2, 1, 0]
    assert scores.tolist() == [4.0, 3.0, 2.5]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=1, max_size=40), st.integers(1, 50))
def test_reranking_equals_sorting_and_nan_is_last(prior: list[float], n: int) -> None:
    table = as_readonly(np.zeros((len(prior), 3)))
    items, _ = rerank(
        table,
        NO_COMPACT,
        np.ones(2, np.float32),
        np.arange(len(prior))[::-1].copy(),
        np.array(prior[::-1], np.float32),
        n,
    )
    ranked = sorted(range(len(prior)), key=lambda item: (-(-np.inf if np.isnan(prior[item]) else prior[item]), item))
    assert items.tolist() == ranked[:n]
