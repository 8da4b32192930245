"""Filters as masks, by hand and against sets."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pathdex.data.ragged import Ragged
from pathdex.retrieval.filters import NO_FILTERS, Filters

ITEMS = 6
codes = st.lists(st.integers(0, ITEMS - 1), max_size=ITEMS)
FILTERS = Filters(
    exclude=Ragged.from_rows([[0, 4], []]),
    allow=[np.array([0, 1, 2]), None],
    where=[None, np.array([True, True, False, False, False, True])],
)


def test_an_item_must_pass_every_filter() -> None:
    assert np.flatnonzero(FILTERS.eligible(0, ITEMS)).tolist() == [1, 2]
    assert np.flatnonzero(FILTERS.allowed(0, ITEMS)).tolist() == [0, 1, 2]
    assert np.flatnonzero(FILTERS.eligible(1, ITEMS)).tolist() == [0, 1, 5]


def test_no_filters_allow_everything() -> None:
    assert NO_FILTERS.eligible(0, ITEMS).all()
    assert NO_FILTERS.allow_of(0) is None
    assert NO_FILTERS.where_of(0) is None
    assert NO_FILTERS.take(np.array([0])) == NO_FILTERS


def test_the_filters_of_some_queries() -> None:
    swapped = FILTERS.take(np.array([1, 0, 1]))
    for query, origin in enumerate([1, 0, 1]):
        assert (swapped.eligible(query, ITEMS) == FILTERS.eligible(origin, ITEMS)).all()


@given(codes, st.none() | codes, st.none() | codes)
def test_masks_equal_sets(exclude: list[int], allow: list[int] | None, where: list[int] | None) -> None:
    given_filters: dict[str, Any] = {"exclude": Ragged.from_rows([exclude])}
    if allow is not None:
        given_filters["allow"] = [np.unique(np.array(allow, np.int64))]
    if where is not None:
        given_filters["where"] = [np.isin(np.arange(ITEMS), where)]
    expected = set(range(ITEMS)) - set(exclude)
    for one in (allow, where):
        expected &= set(range(ITEMS)) if one is None else set(one)
    assert set(np.flatnonzero(Filters(**given_filters).eligible(0, ITEMS)).tolist()) == expected
