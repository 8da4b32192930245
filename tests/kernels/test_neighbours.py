"""Similarities to a history and candidates from neighbours, by hand and against a dictionary."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.candidates import ALL_ITEMS, NO_ITEMS
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.neighbours import (
    Neighbours,
    add_similarity,
    join_neighbours,
    join_share,
    similar_to,
    similarity_of,
)

# Item 0 is near 1 (0.5) and 2 (0.25), item 1 near 2 (0.5) and 3 (0.125); items 2 and 3 have no neighbours.
NEAR = Neighbours(
    as_readonly(np.array([0, 2, 4, 4, 4]), np.int64),
    as_readonly(np.array([1, 2, 2, 3]), np.int32),
    as_readonly(np.array([0.5, 0.25, 0.5, 0.125])),
)


def test_similarities_add_up_over_the_distinct_items_of_a_history() -> None:
    similar = similar_to(NEAR, np.array([0, 1, 0]), 0.0)
    assert dict(zip(similar.items.tolist(), similar.similarity.tolist(), strict=True)) == {1: 0.5, 2: 0.75, 3: 0.125}
    assert similarity_of(similar, np.array([2, 0, 3])).tolist() == [0.75, 0.0, 0.125]


def test_recency_weighs_items_by_how_many_follow_their_latest_occurrence() -> None:
    # Item 0 comes last, so item 1 counts half.
    similar = similar_to(NEAR, np.array([0, 1, 0]), 1.0)
    assert similarity_of(similar, np.arange(4)).tolist() == [0.0, 0.5, 0.5, 0.0625]


def test_no_history_is_similar_to_nothing() -> None:
    similar = similar_to(NEAR, np.empty(0, np.int64), 0.0)
    assert len(similar.items) == 0
    assert similarity_of(similar, np.array([0, 1])).tolist() == [0.0, 0.0]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.integers(0, 9), st.sampled_from([0.25, 0.5, 1.0]), max_size=5), min_size=10, max_size=10
    ),
    st.lists(st.integers(0, 9), max_size=6),
    st.sampled_from([0.0, 0.3, 1.0]),
)
def test_similarities_equal_a_dictionary(rows: list[dict[int, float]], history: list[int], recency: float) -> None:
    near = Neighbours(
        as_readonly(np.cumsum([0, *(len(row) for row in rows)]), np.int64),
        as_readonly(np.array([item for row in rows for item in row]), np.int32),
        as_readonly(np.array([value for row in rows for value in row.values()])),
    )
    weights = {item: (len(history) - position) ** -recency for position, item in enumerate(history)}
    expected = [sum(weight * rows[item].get(other, 0.0) for item, weight in weights.items()) for other in range(10)]
    similar = similar_to(near, np.array(history, np.int64), recency)
    np.testing.assert_allclose(similarity_of(similar, np.arange(10)), expected, rtol=1e-5)


def join(reserved: int, candidates: int, exclude: list[int] | None = None) -> dict[int, float]:
    """Paths found items 0 and 3; the history is item 0, then 1."""
    items, log_p = join_neighbours(
        similar_to(NEAR, np.array([0, 1]), 0.0),
        np.array([0, 3]),
        np.array([-1.0, -2.0], np.float32),
        NO_ITEMS if exclude is None else as_readonly(np.array(exclude), np.int32),
        ALL_ITEMS,
        reserved,
        candidates,
    )
    return dict(zip(items.tolist(), log_p.tolist(), strict=True))


def test_the_most_similar_item_joins_with_the_lowest_probability() -> None:
    assert join(reserved=1, candidates=3) == pytest.approx({0: -1.0, 3: -2.0, 2: -2.0})
    assert join(reserved=1, candidates=3, exclude=[2]) == pytest.approx({0: -1.0, 3: -2.0, 1: -2.0})


def test_a_joining_item_that_paths_found_keeps_its_probability() -> None:
    assert join(reserved=1, candidates=2, exclude=[1, 2]) == pytest.approx({0: -1.0, 3: -2.0})


def test_places_without_similar_items_go_back_to_the_paths() -> None:
    assert join(reserved=2, candidates=2, exclude=[1, 2, 3]) == pytest.approx({0: -1.0, 3: -2.0})


def test_a_share_of_the_candidates_joins() -> None:
    near = Neighbours.pack(np.array([0, 2, 2, 2, 2]), np.array([2, 3], np.int32), np.array([0.5, 0.2], np.float32))
    similar = similar_to(near, np.array([0]), 0.0)
    items, log_p = np.array([1]), np.array([-1.0], np.float32)
    nothing, everything = np.empty(0, np.int32), np.empty(0, np.bool_)
    many, many_log_p = np.array([0, 1]), np.array([-1.0, -2.0], np.float32)
    # Half of two candidates: the likelier of the two from paths, and the most similar item.
    assert join_share(similar, many, many_log_p, nothing, everything, 0.5, 2)[0].tolist() == [0, 2]
    # Without a limit the share is added.
    assert join_share(similar, many, many_log_p, nothing, everything, 0.5, 0)[0].tolist() == [0, 1, 2]
    # Half of one candidate is none.
    assert join_share(similar, items, log_p, nothing, everything, 0.5, 1)[0].tolist() == [1]
    assert join_share(similar, many, many_log_p, nothing, everything, 0.0, 1)[0].tolist() == [0]
    # All candidates are neighbours.
    assert join_share(similar, many, many_log_p, nothing, everything, 1.0, 2)[0].tolist() == [2, 3]


def test_similarity_is_added_to_the_prior() -> None:
    prior = np.array([1.0, 2.0], np.float32)
    add_similarity(prior, np.array([0.0, 0.5], np.float32), 2.0, 0.1)
    np.testing.assert_allclose(prior, [1 + 2 * np.log(0.1), 2 + 2 * np.log(0.6)], rtol=1e-6)
