"""Metrics on answers that can be checked by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex import metrics
from pathdex.data.ragged import Ragged
from pathdex.errors import DataError

RECOMMENDED = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 0, -1, -1]])
TRUTH = Ragged.from_rows([[2, 4, 9], [1, 2], [0]])
HITS = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]], bool)


def test_a_hit_is_an_item_of_the_same_users_truth() -> None:
    np.testing.assert_array_equal(metrics.hit_matrix(RECOMMENDED, TRUTH), HITS)


def test_padding_is_no_hit() -> None:
    hits = metrics.hit_matrix(np.array([[0, -1], [-1, -1]]), Ragged.from_rows([[0], [0]]))
    assert hits.tolist() == [[True, False], [False, False]]


def test_one_row_of_truth_per_query() -> None:
    with pytest.raises(DataError, match=r"^recommended has 2 rows and truth 3; pass the same queries to both$"):
        metrics.hit_matrix(RECOMMENDED[:2], TRUTH)


@given(
    rows=st.lists(
        st.tuples(
            st.lists(st.integers(0, 9), min_size=4, max_size=4), st.lists(st.integers(0, 9), min_size=1, max_size=6)
        ),
        max_size=6,
    )
)
def test_hits_equal_membership_row_by_row(rows: list[tuple[list[int], list[int]]]) -> None:
    recommended = np.array([items for items, _ in rows]).reshape(-1, 4)
    truth = Ragged.from_rows([items for _, items in rows])
    expected = [[item in wanted for item in items] for items, wanted in rows]
    assert metrics.hit_matrix(recommended, truth).tolist() == expected


def test_precision_divides_by_n_also_where_fewer_were_recommended() -> None:
    assert metrics.precision(HITS).tolist() == [0.5, 0.0, 0.25]


def test_recall_divides_by_the_length_of_the_truth() -> None:
    assert metrics.recall(HITS, TRUTH).tolist() == [2 / 3, 0.0, 1.0]


def test_repeats_lengthen_the_truth_but_are_hit_once() -> None:
    truth = Ragged.from_rows([[7, 7, 7, 8]])
    hits = metrics.hit_matrix(np.array([[7, 1]]), truth)
    assert metrics.recall(hits, truth).tolist() == [0.25]
    assert metrics.precision(hits).tolist() == [0.5]


def test_recall_of_an_empty_truth_is_0() -> None:
    assert metrics.recall(np.array([[False]]), Ragged.from_rows([[]])).tolist() == [0.0]
    assert metrics.distinct_recall(np.array([[False]]), Ragged.from_rows([[]])).tolist() == [0.0]


def test_distinct_recall_counts_each_item_of_the_truth_once() -> None:
    truth = Ragged.from_rows([[7, 7, 7, 8], [7, 7], [1, 2, 2, 3, 3, 3]])
    hits = metrics.hit_matrix(np.array([[7, 1], [7, 8], [3, 1]]), truth)
    assert metrics.distinct_recall(hits, truth).tolist() == [1 / 2, 1.0, 2 / 3]
    assert metrics.recall(hits, truth).tolist() == [1 / 4, 1 / 2, 2 / 6]


def test_distinct_recall_equals_recall_without_repeats() -> None:
    np.testing.assert_array_equal(metrics.distinct_recall(HITS, TRUTH), metrics.recall(HITS, TRUTH))


@given(
    rows=st.lists(
        st.tuples(
            st.lists(st.integers(0, 9), min_size=4, max_size=4, unique=True),
            st.lists(st.integers(0, 9), min_size=1, max_size=8),
        ),
        max_size=6,
    )
)
def test_distinct_recall_equals_the_share_of_the_set(rows: list[tuple[list[int], list[int]]]) -> None:
    truth = Ragged.from_rows([wanted for _, wanted in rows])
    hits = metrics.hit_matrix(np.array([items for items, _ in rows]).reshape(-1, 4), truth)
    expected = [len(set(items) & set(wanted)) / len(set(wanted)) for items, wanted in rows]
    assert metrics.distinct_recall(hits, truth).tolist() == expected


def test_f_is_taken_per_user() -> None:
    per_user = metrics.f_measure(np.array([1.0, 0.0, 0.5]), np.array([0.1, 0.0, 0.5]))
    assert per_user == pytest.approx([2 * 0.1 / 1.1, 0.0, 0.5])
    assert per_user.mean() != pytest.approx(2 * 0.5 * 0.2 / 0.7)


def test_ndcg_discounts_by_rank_and_divides_by_the_best_possible() -> None:
    second_and_fourth = 1 / math.log2(3) + 1 / math.log2(5)
    three_on_top = 1 + 1 / math.log2(3) + 1 / 2
    assert metrics.ndcg(HITS, TRUTH) == pytest.approx([second_and_fourth / three_on_top, 0.0, 1 / math.log2(3)])


def test_ndcg_of_a_perfect_answer_is_1_whatever_the_truths_length() -> None:
    truth = Ragged.from_rows([[3, 3, 1], [0, 1, 2, 3, 4]])
    recommended = np.array([[3, 1, 0], [4, 0, 2]])
    assert metrics.ndcg(metrics.hit_matrix(recommended, truth), truth) == pytest.approx([1.0, 1.0])


def test_ndcg_of_an_empty_truth_is_0() -> None:
    assert metrics.ndcg(np.array([[False, False]]), Ragged.from_rows([[]])).tolist() == [0.0]


def test_hit_rate_and_reciprocal_rank() -> None:
    assert metrics.hit_rate(HITS).tolist() == [1.0, 0.0, 1.0]
    assert metrics.reciprocal_rank(HITS).tolist() == [0.5, 0.0, 0.5]
    assert metrics.reciprocal_rank(np.array([[True, True], [False, True]])).tolist() == [1.0, 0.5]


def test_counts_leave_out_padding() -> None:
    assert metrics.recommendation_counts(np.array([[0, 2], [2, -1]]), 4).tolist() == [1, 0, 2, 0]


def test_coverage_is_a_share_of_the_catalogue() -> None:
    assert metrics.coverage(np.array([1, 0, 2, 0])) == 0.5


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([3, 3, 3, 3], 0.0), ([0, 0, 0, 9], 0.75), ([1, 3], 0.25), ([3, 1], 0.25), ([0, 0], 0.0)],
)
def test_gini(counts: list[int], expected: float) -> None:
    assert metrics.gini(np.array(counts)) == pytest.approx(expected)


@given(counts=st.lists(st.integers(0, 50), min_size=1, max_size=12))
def test_gini_is_half_the_relative_mean_difference(counts: list[int]) -> None:
    total = sum(counts)
    differences = sum(abs(one - other) for one in counts for other in counts)
    expected = differences / (2 * len(counts) * total) if total else 0.0
    assert metrics.gini(np.array(counts)) == pytest.approx(expected)


def test_popularity_weighs_items_by_how_often_they_are_recommended() -> None:
    counts, item_counts = np.array([3, 1, 0]), np.array([10, 2, 7])
    assert metrics.mean_popularity(counts, item_counts) == 8.0
    assert metrics.mean_popularity(np.zeros(3, int), item_counts) == 0.0


def test_the_percentile_shares_ties() -> None:
    item_counts = np.array([5, 1, 1, 9])
    assert metrics.mean_popularity_percentile(np.array([1, 0, 0, 0]), item_counts) == 62.5
    assert metrics.mean_popularity_percentile(np.array([0, 1, 0, 0]), item_counts) == 25.0
    assert metrics.mean_popularity_percentile(np.array([0, 0, 0, 1]), item_counts) == 87.5


def test_distinct_counts() -> None:
    assert metrics.distinct_counts(Ragged.from_rows([[1, 1, 2], [], [0]])).tolist() == [2, 0, 1]


COUNTS = np.array([5, 90, 1, 40, 7, 0, 60, 5, 20, 3])
"""Ten items, so each is a decile: 1, 6, 3, 8, 4, 0, 7, 9, 2, 5 by falling count."""


def test_deciles_follow_the_counts_and_ties_the_codes() -> None:
    assert metrics.popularity_deciles(COUNTS).tolist() == [5, 0, 8, 2, 4, 9, 1, 6, 3, 7]


def test_deciles_of_a_catalogue_that_ten_does_not_divide() -> None:
    deciles = metrics.popularity_deciles(np.arange(25))
    assert np.bincount(deciles).tolist() == [3, 2, 3, 2, 3, 2, 3, 2, 3, 2]


def test_shares_leave_out_empty_places() -> None:
    shares = metrics.decile_shares(np.array([[1, 6, -1], [1, 5, -1]]), metrics.popularity_deciles(COUNTS))
    assert shares == [0.5, 0.25, 0, 0, 0, 0, 0, 0, 0, 0.25]
    assert metrics.decile_shares(np.full((2, 2), -1), metrics.popularity_deciles(COUNTS)) == [0.0] * 10


def test_the_tail_is_all_but_the_first_two_deciles() -> None:
    items = np.array([[1, 6, -1], [1, 3, 5], [-1, -1, -1]])
    assert metrics.tail_shares(items, metrics.popularity_deciles(COUNTS)).tolist() == [0, pytest.approx(2 / 3), 0]


def test_novelty_counts_bits() -> None:
    """Four items with counts 3, 1, 0, 0 and one added to each: shares 4/8, 2/8, 1/8, 1/8."""
    counts = np.array([3, 1, 0, 0])
    assert metrics.novelty(np.array([[0, 1, -1]]), counts) == 1.5
    assert metrics.novelty(np.array([[2, 3]]), counts) == 3.0
    assert metrics.novelty(np.array([[-1]]), counts) == 0.0
