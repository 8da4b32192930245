"""The exact top n against sorting."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import (
    Ranking,
    TopN,
    fill_in_order,
    incomplete_rows,
    join_rankings,
    no_ranking,
    replace_rows,
    row_blocks,
    top_n_of,
)

QUERIES, ITEMS = 3, 9
codes = st.lists(st.integers(0, ITEMS - 1), max_size=ITEMS)
# Few distinct values make ties common.
dense_scores = arrays(np.float32, (QUERIES, ITEMS), elements=st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]))


@st.composite
def filter_sets(draw: Any) -> Filters:
    exclude = draw(st.none() | st.lists(codes, min_size=QUERIES, max_size=QUERIES))
    allow = draw(st.none() | st.lists(st.none() | codes, min_size=QUERIES, max_size=QUERIES))
    where = draw(st.none() | st.lists(st.none() | arrays(np.bool_, ITEMS), min_size=QUERIES, max_size=QUERIES))
    return Filters(
        None if exclude is None else Ragged.from_rows(exclude),
        None if allow is None else [None if one is None else np.unique(np.array(one, np.int64)) for one in allow],
        where,
    )


def sorted_answer(scores: NDArray[np.float32], n: int, eligible: NDArray[np.bool_]) -> list[tuple[int, float]]:
    """The readable twin for one query."""
    order = sorted(np.flatnonzero(eligible).tolist(), key=lambda item: (-scores[item], item))
    return [(item, float(scores[item])) for item in order[:n]]


def top_n(scores: NDArray[np.float32], n: int, filters: Filters = NO_FILTERS) -> Ranking:
    best = TopN(*scores.shape, n, filters)
    best.add(scores)
    return best.ranking()


def answers(ranking: Ranking) -> list[list[tuple[int, float]]]:
    return [
        [(int(item), float(score)) for item, score in zip(items, scores, strict=True) if item >= 0]
        for items, scores in zip(ranking.items, ranking.scores, strict=True)
    ]


@settings(deadline=None)
@given(scores=dense_scores, n=st.integers(1, ITEMS + 3), filters=filter_sets(), block=st.integers(1, ITEMS))
def test_dense_blocks_of_any_size_equal_sorting(
    scores: NDArray[np.float32], n: int, filters: Filters, block: int
) -> None:
    best = TopN(QUERIES, ITEMS, n, filters)
    for first in range(0, ITEMS, block):
        best.add(np.ascontiguousarray(scores[:, first : first + block]), first)
    ranking = best.ranking()
    masks = [filters.eligible(query, ITEMS) for query in range(QUERIES)]
    assert ranking.items.shape == ranking.scores.shape == (QUERIES, n)
    assert answers(ranking) == [sorted_answer(scores[query], n, mask) for query, mask in enumerate(masks)]
    assert ranking.candidates.tolist() == [mask.sum() for mask in masks]
    np.testing.assert_array_equal(top_n(scores, n, filters).items, ranking.items)


@settings(deadline=None)
@given(
    scores=dense_scores,
    n=st.integers(1, ITEMS + 3),
    filters=filter_sets(),
    orders=st.lists(st.permutations(range(ITEMS)), min_size=QUERIES, max_size=QUERIES),
    sizes=st.lists(st.integers(0, ITEMS), min_size=QUERIES, max_size=QUERIES),
)
def test_candidates_shuffled_if_unordered_equal_sorting(
    scores: NDArray[np.float32], n: int, filters: Filters, orders: list[list[int]], sizes: list[int]
) -> None:
    candidates = Ragged.from_rows(order[:size] for order, size in zip(orders, sizes, strict=True))
    flat = np.concatenate([scores[query][row] for query, row in enumerate(candidates)])
    ranking = top_n_of(candidates, flat, ITEMS, n, filters)
    for query, row in enumerate(candidates):
        mask = filters.eligible(query, ITEMS) & np.isin(np.arange(ITEMS), row)
        assert answers(ranking)[query] == sorted_answer(scores[query], n, mask)
        assert ranking.candidates[query] == mask.sum()


@settings(deadline=None)
@given(
    scores=dense_scores,
    n=st.integers(1, ITEMS + 3),
    filters=filter_sets(),
    order=st.permutations(range(ITEMS)),
    found=st.integers(0, 4),
)
def test_filling_completes_an_answer_with_all_eligible_items(
    scores: NDArray[np.float32], n: int, filters: Filters, order: list[int], found: int
) -> None:
    start = top_n(np.nan_to_num(scores, neginf=-2.0), min(n, found) or 1, filters)
    padded = no_ranking(QUERIES, n)
    padded.items[:, : start.items.shape[1]] = start.items
    padded.scores[:, : start.items.shape[1]] = start.scores
    full = fill_in_order(padded, np.array(order), np.full(ITEMS, -9.0, np.float32), filters)
    for query in range(QUERIES):
        eligible = np.flatnonzero(filters.eligible(query, ITEMS)).tolist()
        held = [item for item in start.items[query].tolist() if item >= 0]
        expected = held + [item for item in order if item in eligible and item not in held]
        assert [item for item, _ in answers(full)[query]] == expected[:n]
        assert [score for _, score in answers(full)[query][len(held) :]] == [-9.0] * (len(expected[:n]) - len(held))
        assert full.candidates[query] == len(expected[:n]) - len(held)
    assert padded.candidates.tolist() == [0] * QUERIES


def test_nan_ranks_last() -> None:
    ranking = top_n(np.array([[np.nan, 1.0, np.nan, 2.0]], np.float32), 3)
    assert ranking.items.tolist() == [[3, 1, 0]]
    assert ranking.scores.tolist() == [[2.0, 1.0, -np.inf]]


def test_a_ranking_can_be_read_and_continued() -> None:
    best = TopN(1, 4, 2)
    best.add(np.array([[1.0, 3.0]], np.float32))
    assert best.ranking().items.tolist() == best.ranking().items.tolist() == [[1, 0]]
    best.add(np.array([[3.0, 5.0]], np.float32), 2)
    assert best.ranking().items.tolist() == [[3, 1]]


def test_no_queries() -> None:
    assert top_n(np.empty((0, 5), np.float32), 3).items.shape == (0, 3)
    assert [rows.tolist() for rows in row_blocks(0, 4)] == [[]]


def test_blocks_cover_all_rows() -> None:
    assert [rows.tolist() for rows in row_blocks(5, 2)] == [[0, 1], [2, 3], [4]]


def test_joined_batches_equal_the_whole() -> None:
    random = np.random.default_rng(0)
    scores = random.normal(size=(5, 7)).astype(np.float32)
    filters = Filters(
        exclude=Ragged.from_rows([[0], [1, 2], [], [3], [4]]), allow=[np.arange(5), None, np.arange(3), None, None]
    )
    parts = [top_n(scores[rows], 3, filters.take(rows)) for rows in row_blocks(5, 2)]
    joined, whole = join_rankings(parts), top_n(scores, 3, filters)
    np.testing.assert_array_equal(joined.items, whole.items)
    np.testing.assert_array_equal(joined.scores, whole.scores)
    np.testing.assert_array_equal(joined.candidates, whole.candidates)


RANKING = Ranking(
    np.array([[3, 1], [2, -1], [0, -1], [-1, -1]]),
    np.array([[2.0, 1.0], [5.0, -np.inf], [4.0, -np.inf], [-np.inf, -np.inf]], np.float32),
    np.array([4, 1, 1, 0]),
)


def test_a_row_is_incomplete_if_more_items_are_eligible() -> None:
    assert incomplete_rows(RANKING, NO_FILTERS, 4).tolist() == [1, 2, 3]
    filters = Filters(exclude=Ragged.from_rows([[], [0, 1, 3], [1], [0, 1, 2, 3]]))
    assert incomplete_rows(RANKING, filters, 4).tolist() == [2]


def test_no_row_can_hold_more_than_the_catalogue() -> None:
    full = Ranking(np.array([[0, -1]]), np.array([[1.0, -np.inf]], np.float32), np.array([1]))
    assert incomplete_rows(full, NO_FILTERS, 1).tolist() == []


def test_rows_are_replaced() -> None:
    better = Ranking(np.array([[2, 0]]), np.array([[5.0, 3.0]], np.float32), np.array([4]))
    replaced = replace_rows(RANKING, np.array([1]), better)
    assert replaced.items.tolist() == [[3, 1], [2, 0], [0, -1], [-1, -1]]
    assert replaced.scores[1].tolist() == [5.0, 3.0]
    assert replaced.candidates.tolist() == [4, 4, 1, 0]
    assert RANKING.items[1].tolist() == [2, -1]
