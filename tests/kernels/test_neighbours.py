"""Similarities to a history and candidates from neighbours, by hand and against a dictionary."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.candidates import ALL_ITEMS, NO_COMPACT, PathItems, gather
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.neighbours import (
    NO_NEIGHBOURS,
    Neighbours,
    add_similarity,
    join_neighbours,
    neighbour_entries,
    similar_to,
    similarity_of,
)

# Item 0 is near 1 (0.5) and 2 (0.25), item 1 near 2 (0.5) and 3 (0.125); items 2 and 3 have no neighbours.
NEAR = Neighbours(
    as_readonly(np.array([0, 2, 4, 4, 4]), np.int64),
    as_readonly(np.array([1, 2, 2, 3]), np.int32),
    as_readonly(np.array([0.5, 0.25, 0.5, 0.125])),
)


def neighbours_of(rows: list[dict[int, float]]) -> Neighbours:
    return Neighbours.pack(
        np.cumsum([0, *(len(row) for row in rows)]),
        np.array([item for row in rows for item in row], np.int32),
        np.array([value for row in rows for value in row.values()], np.float32),
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
    near = neighbours_of(rows)
    weights = {item: (len(history) - position) ** -recency for position, item in enumerate(history)}
    expected = [sum(weight * rows[item].get(other, 0.0) for item, weight in weights.items()) for other in range(10)]
    similar = similar_to(near, np.array(history, np.int64), recency)
    np.testing.assert_allclose(similarity_of(similar, np.arange(10)), expected, rtol=1e-5)


# Path 0 holds item 0, path 1 item 3.
ON_PATHS = PathItems.pack(np.array([0, 1]), np.array([1, 2]), np.array([0, 3], np.int32), np.zeros(2, np.float32))


def join(
    share: float,
    candidates: int,
    exclude: tuple[int, ...] = (),
    mask: tuple[bool, ...] = (),
    near: Neighbours = NEAR,
) -> dict[int, tuple[float, float]]:
    """Log probability and similarity of each item. Paths found items 0 and 3; the history is item 0, then 1, then 0."""
    excluded, allowed = as_readonly(np.array(exclude), np.int32), as_readonly(np.array(mask), np.bool_)
    history = as_readonly(np.array([0, 1, 0]), np.int32)
    room = neighbour_entries(near, history)
    log_p = np.array([-1.0, -2.0], np.float32)
    found = gather(ON_PATHS, np.array([0, 1]), log_p, excluded, allowed, NO_COMPACT, room)
    rows = join_neighbours(found, near, history, 0.0, allowed, share, candidates)
    return {item: (log_p, similarity) for item, log_p, similarity in zip(*(row.tolist() for row in rows), strict=True)}


def test_the_most_similar_item_joins_with_the_lowest_probability() -> None:
    found = {0: (-1.0, 0.0), 3: (-2.0, 0.125)}
    assert join(0.34, 3) == {**found, 2: (-2.0, 0.75)}
    assert join(0.34, 3, exclude=(2,)) == {**found, 1: (-2.0, 0.5)}
    assert join(0.34, 3, mask=(True, True, False, True)) == {**found, 1: (-2.0, 0.5)}


def test_a_joining_item_that_paths_found_keeps_its_probability() -> None:
    assert join(1.0, 2, exclude=(1, 2)) == {0: (-1.0, 0.0), 3: (-2.0, 0.125)}


def test_places_without_similar_items_go_back_to_the_paths() -> None:
    assert join(1.0, 2, exclude=(1, 2, 3)) == {0: (-1.0, 0.0)}
    assert join(1.0, 1, exclude=(1, 2, 3)) == {0: (-1.0, 0.0)}


def test_a_share_of_the_candidates_joins() -> None:
    # Half of two candidates: the likelier of the two on paths, and the most similar item.
    assert list(join(0.5, 2)) == [0, 2]
    # Without a limit the share of the items on paths is added.
    assert list(join(0.5, 0)) == [0, 3, 2]
    # Half of one candidate is none.
    assert list(join(0.5, 1)) == [0]
    assert list(join(0.0, 1)) == [0]
    # All candidates are neighbours, however few items are on paths.
    assert sorted(join(1.0, 2)) == [1, 2]
    assert sorted(join(1.0, 3, exclude=(0,))) == [1, 2, 3]
    # Nothing is on the paths.
    assert join(1.0, 2, exclude=(0, 3)) == {1: (0.0, 0.5), 2: (0.0, 0.75)}


@settings(max_examples=100, deadline=None)
@given(
    on_path=st.dictionaries(st.integers(0, 39), st.sampled_from([-3.0, -2.0, -1.0]), max_size=20),
    near=st.lists(
        st.dictionaries(st.integers(0, 39), st.sampled_from([0.25, 0.5]), max_size=9), min_size=40, max_size=40
    ),
    history=st.lists(st.integers(0, 39), max_size=6),
    exclude=st.sets(st.integers(0, 39), max_size=9),
    recency=st.sampled_from([0.0, 1.0, 2.0]),
    share=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
    candidates=st.integers(0, 30),
)
def test_joining_equals_sets(
    on_path: dict[int, float],
    near: list[dict[int, float]],
    history: list[int],
    exclude: set[int],
    recency: float,
    share: float,
    candidates: int,
) -> None:
    """Paths hold one item each. Two items have weights of 1 and a power of one half, so sums are exact."""
    history = history[-2:] if recency else history
    items, log_p = np.array(list(on_path), np.int32), np.array(list(on_path.values()), np.float32)
    paths = PathItems.pack(np.arange(len(items)), np.arange(len(items)) + 1, items, np.zeros(len(items), np.float32))
    lists = neighbours_of(near)
    latest, excluded = as_readonly(np.array(history), np.int32), as_readonly(np.array(sorted(exclude)), np.int32)
    room = neighbour_entries(lists, latest)
    found = gather(paths, np.arange(len(items)), log_p, excluded, ALL_ITEMS, NO_COMPACT, room)
    rows = [row.tolist() for row in join_neighbours(found, lists, latest, recency, ALL_ITEMS, share, candidates)]

    weights = {item: (len(history) - position) ** -recency for position, item in enumerate(history)}
    similarity = {item: sum(weights[one] * near[one].get(item, 0.0) for one in weights) for item in range(40)}
    eligible = {item: value for item, value in on_path.items() if item not in exclude}
    reserved = int(share * (candidates or len(eligible)))
    limit = candidates or len(eligible) + reserved
    likely = sorted(eligible, key=lambda item: (-eligible[item], item))
    left = [item for item in range(40) if similarity[item] and item not in {*exclude, *likely[: limit - reserved]}]
    joining = sorted(left, key=lambda item: (-similarity[item], item))[:reserved]
    others = [item for item in likely if item not in joining][: limit - len(joining)]
    lowest = min(eligible.values(), default=0.0)
    expected = [(item, eligible.get(item, lowest), similarity[item]) for item in {*others, *joining}]
    assert sorted(zip(*rows, strict=True)) == sorted(expected)


def test_without_neighbours_the_most_probable_items_stay() -> None:
    assert join(1.0, 1, near=NO_NEIGHBOURS) == {0: (-1.0, 0.0)}
    assert join(1.0, 0, near=NO_NEIGHBOURS) == {0: (-1.0, 0.0), 3: (-2.0, 0.0)}


def test_similarity_is_added_to_the_prior() -> None:
    prior = np.array([1.0, 2.0], np.float32)
    add_similarity(prior, np.array([0.0, 0.5], np.float32), 2.0, 0.1)
    np.testing.assert_allclose(prior, [1 + 2 * np.log(0.1), 2 + 2 * np.log(0.6)], rtol=1e-6)
