"""Answers that are too short."""

import numpy as np

from pathdex.data.ragged import Ragged
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, incomplete_rows, replace_rows

RANKING = Ranking(
    np.array([[3, 1], [2, -1], [0, -1], [-1, -1]]),
    np.array([[2.0, 1.0], [5.0, -np.inf], [4.0, -np.inf], [-np.inf, -np.inf]], np.float32),
    np.array([4, 1, 1, 0]),
)


def test_a_row_is_short_where_more_items_are_eligible() -> None:
    assert incomplete_rows(RANKING, NO_FILTERS, 4).tolist() == [1, 2, 3]
    filters = Filters(exclude=Ragged.from_rows([[], [0, 1, 3], [1], [0, 1, 2, 3]]))
    assert incomplete_rows(RANKING, filters, 4).tolist() == [2]


def test_no_row_can_hold_more_than_the_catalogue() -> None:
    full = Ranking(np.array([[0, -1]]), np.array([[1.0, -np.inf]], np.float32), np.array([1]))
    assert incomplete_rows(full, NO_FILTERS, 1).tolist() == []


def test_rows_are_answered_anew() -> None:
    better = Ranking(np.array([[2, 0]]), np.array([[5.0, 3.0]], np.float32), np.array([4]))
    replaced = replace_rows(RANKING, np.array([1]), better)
    assert replaced.items.tolist() == [[3, 1], [2, 0], [0, -1], [-1, -1]]
    assert replaced.scores[1].tolist() == [5.0, 3.0]
    assert replaced.candidates.tolist() == [4, 4, 1, 0]
    assert RANKING.items[1].tolist() == [2, -1]
