"""Queries in ids and in codes."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import QueryError
from pathdex.recommenders.query import Query, code_filters

ITEMS = Vocabulary(["a", "b", "c"])


def test_histories_and_denied_items_are_excluded() -> None:
    histories = Ragged.from_rows([np.array([0]), np.array([1])])
    queries = [Query(["a"], deny=["c", "unknown"]), Query(["b"], exclude_seen=False, allow=["a", "b"])]
    filters = code_filters(queries, histories, ITEMS, [None, None])
    assert filters.exclude is not None
    assert [row.tolist() for row in filters.exclude] == [[0, 2], []]
    assert filters.allow is not None
    assert [None if one is None else one.tolist() for one in filters.allow] == [None, [0, 1]]
    assert filters.where is None


def test_wrong_filters() -> None:
    with pytest.raises(QueryError, match="deny='a': must be a list of ids, not a string"):
        Query([], deny="a")
    with pytest.raises(QueryError, match="exclude_seen=1: must be true or false"):
        Query([], exclude_seen=1)  # type: ignore[arg-type]
