"""Test data of one's own."""

from __future__ import annotations

import polars as pl
import pytest

import pathdex
from pathdex.data import read
from pathdex.errors import DataError, QueryError
from pathdex.evaluation.own_data import own_queries

RATINGS = pl.DataFrame({"who": list("aabbc"), "what": [1, 2, 2, 3, 2], "stars": [5, 5, 5, 1, 4]})
MODEL = pathdex.Popularity().fit(read(RATINGS, user="who", item="what", rating="stars", min_rating=1))
LATER = pl.DataFrame({"who": list("aaxb"), "what": [3, 1, 1, 2], "stars": [3, 3, 3, 0]})


def rows(one: pathdex.Interactions) -> list[list[int]]:
    return [row.tolist() for row in one]


def test_the_second_half_is_to_be_found() -> None:
    queries = own_queries(MODEL, LATER)
    assert queries.users.ids(range(len(queries))) == ["a"]
    assert (rows(queries.history), rows(queries.truth)) == ([[2]], [[0]])


def test_all_rows_follow_the_history() -> None:
    queries = own_queries(MODEL, LATER, history=RATINGS)
    assert queries.users.ids(range(len(queries))) == ["a", "x"]
    assert (rows(queries.history), rows(queries.truth)) == ([[0, 1], []], [[2, 0], [0]])


def test_unknown_items_are_left_out() -> None:
    odd = pl.concat([LATER, pl.DataFrame({"who": ["a"], "what": [77], "stars": [5]})])
    with pytest.warns(UserWarning, match="1 test rows have items that the model does not know and were left out"):
        assert rows(own_queries(MODEL, odd).truth) == [[0]]
    with pytest.raises(DataError, match="no user has enough items that the model knows"):
        own_queries(MODEL, odd.tail(1))


def test_a_model_is_evaluated_on_a_frame() -> None:
    result = pathdex.evaluate(MODEL, LATER, n=1, history=RATINGS)
    # Seen items removed: a gets 3, which is in the truth, and x gets 2, which is not.
    assert (result.users, result.results[0].method, result.results[0].figures["precision"]) == (2, "popularity", 0.5)
    with pytest.raises(QueryError, match="queries have histories already; leave it out"):
        pathdex.evaluate(MODEL, own_queries(MODEL, LATER), history=RATINGS)
