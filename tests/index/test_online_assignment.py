"""The online M-step by hand, against a line-by-line version, and its sizes against a recount."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.errors import ConfigError, DataError
from pathdex.index.online_assignment import PathSizes, join_best_path, paths_with_room, place_items, reassign_items
from pathdex.index.postings import NO_PATH
from pathdex.index.scores import ScoreTable


def table_of(codes, scores):
    return ScoreTable(np.array(codes, np.int64), np.array(scores, np.float32))


def test_sizes_count_every_path_except_none():
    sizes = PathSizes([[3, 7], [7, 9], [NO_PATH, NO_PATH]])
    assert [sizes[path] for path in (3, 7, 9, 1)] == [1, 2, 1, 0]
    assert len(sizes) == 3


def test_an_item_moves_to_its_best_paths_and_the_sizes_follow():
    paths = np.array([[8, 9], [3, 4]])
    sizes = PathSizes(paths)
    moved = reassign_items([0], table_of([[3, 1], [-1, -1]], [[0.5, 0.3], [0, 0]]), [4, 1], paths, sizes, penalty=0.0)
    assert moved == 1
    assert paths.tolist() == [[3, 1], [3, 4]]
    assert {path: sizes[path] for path in (1, 3, 4, 8, 9)} == {1: 1, 3: 2, 4: 1, 8: 0, 9: 0}


def test_an_item_does_not_count_against_itself():
    # Path 1 holds the item itself and one other. With the item taken off, joining costs penalty * (2^2 - 1^2) / 2 =
    # 1.5 penalty against 0.5 for the empty path 2, so 2 log(0.8 / 0.2) = 2.77 outweighs a penalty of 2.7.
    paths = np.array([[1], [1]])
    scores = table_of([[1, 2], [1, -1]], [[0.8, 0.2], [1, 0]])
    assert reassign_items([0], scores, [2, 1], paths, PathSizes(paths), penalty=2.7, penalty_degree=2) == 0
    assert reassign_items([0], scores, [2, 1], paths, PathSizes(paths), penalty=2.9, penalty_degree=2) == 1
    assert paths.tolist() == [[2], [1]]


def test_an_item_without_scores_keeps_its_paths():
    paths = np.array([[5, 6]])
    assert reassign_items([0], ScoreTable.empty(1, 3), [9], paths, PathSizes(paths), penalty=1.0) == 0
    assert paths.tolist() == [[5, 6]]


def test_a_path_with_score_zero_is_not_chosen():
    paths = np.array([[1, 2]])
    reassign_items([0], table_of([[5, 6]], [[0.5, 0.0]]), [1], paths, PathSizes(paths), penalty=0.0)
    assert paths.tolist() == [[5, 1]]


def test_placing_and_removing_items():
    paths = np.array([[NO_PATH, NO_PATH], [1, 2]])
    sizes = PathSizes(paths)
    place_items([0], [[2, 3]], paths, sizes)
    assert [sizes[path] for path in (1, 2, 3)] == [1, 2, 1]
    place_items([1], [[NO_PATH, NO_PATH]], paths, sizes)
    assert [sizes[path] for path in (1, 2, 3)] == [0, 1, 1]
    assert paths.tolist() == [[2, 3], [NO_PATH, NO_PATH]]


def test_an_unplaced_item_needs_a_scored_path_for_each_of_its_own():
    paths = np.array([[NO_PATH, NO_PATH]])
    with pytest.raises(DataError, match="0 has no paths and fewer than 2 scored ones"):
        reassign_items([0], table_of([[5, -1]], [[0.5, 0]]), [1], paths, PathSizes(paths), penalty=0.0)
    reassign_items([0], table_of([[5, 8]], [[0.5, 0.1]]), [1], paths, PathSizes(paths), penalty=0.0)
    assert paths.tolist() == [[5, 8]]


def test_wrong_input_is_rejected():
    paths = np.array([[1]])
    with pytest.raises(DataError, match="items: holds 1, must stay below 1"):
        reassign_items([1], ScoreTable.empty(1, 2), [1], paths, PathSizes(paths), penalty=0.0)
    with pytest.raises(ConfigError, match="penalty"):
        reassign_items([0], ScoreTable.empty(1, 2), [1], paths, PathSizes(paths), penalty=-1.0)


def visit(item, codes, scores, count, paths, sizes, penalty, degree):
    """One item of Algorithm 2, line by line."""
    sizes.subtract(paths[item])
    left = [(c, s) for c, s in zip(codes[item], scores[item], strict=True) if s > 0]
    chosen, total = [], 0.0
    while left and len(chosen) < len(paths[item]):
        gains = [
            count * (math.log(total + s) - (math.log(total) if chosen else 0.0))
            - penalty * ((sizes[c] + 1) ** degree - sizes[c] ** degree) / degree
            for c, s in left
        ]
        best = int(np.argmax(gains))
        code, score = left.pop(best)
        chosen.append(code)
        total += score
    chosen += [c for c in paths[item] if c not in chosen][: len(paths[item]) - len(chosen)]
    paths[item] = chosen
    sizes.update(chosen)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_stream_of_visits_equals_the_readable_version(data):
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    num_items, J, S, num_paths = data.draw(st.tuples(*(st.integers(*r) for r in ((1, 12), (1, 3), (3, 6), (8, 30)))))
    penalty, degree = data.draw(st.sampled_from([0.0, 0.1, 3.0])), data.draw(st.sampled_from([2.0, 4.0]))
    paths = np.array([generator.choice(num_paths, J, replace=False) for _ in range(num_items)])
    expected, sizes, counter = [row.tolist() for row in paths], PathSizes(paths), Counter(paths.ravel().tolist())
    counts = generator.integers(0, 50, num_items)
    for _ in range(data.draw(st.integers(1, 6))):
        codes = np.array([generator.choice(num_paths, S, replace=False) for _ in range(num_items)])
        scores = -np.sort(-generator.random((num_items, S)).astype(np.float32), axis=1)
        scores[:, generator.integers(0, S + 1) :] = 0
        seen = generator.integers(0, num_items, generator.integers(1, 9))
        reassign_items(seen, table_of(codes, scores), counts, paths, sizes, penalty=penalty, penalty_degree=degree)
        for item in seen:
            if scores[item, 0] > 0:
                visit(item, codes.tolist(), scores, counts[item], expected, counter, penalty, degree)
    assert paths.tolist() == expected
    used, counted = sizes.items()
    assert dict(zip(used.tolist(), counted.tolist(), strict=True)) == {c: n for c, n in counter.items() if n}


def test_the_table_of_sizes_drops_paths_that_are_no_longer_in_use():
    paths = np.zeros((1, 1), np.int64)
    sizes = PathSizes(paths)
    for path in range(1, 5000):
        place_items([0], [[path]], paths, sizes)
    assert len(sizes) == 1
    assert len(sizes.make_room(1)) < 100


def room_near(paths, sizes, room, seed=0, num_nodes=3, depth=2):
    return paths_with_room(paths, sizes, num_nodes, depth, room, np.random.default_rng(seed)).tolist()


def test_items_join_the_path_with_their_largest_score_instead_of_their_last():
    table = ScoreTable(
        np.array([[9, 2, 1], [1, 2, 3], [7, 8, 9]]), np.array([[5, 2, 1], [3, 2, 1], [0, 0, 0]], np.float32)
    )
    paths = np.array([[1, 2], [4, 1], [5, 6]])
    sizes = PathSizes(paths)
    join_best_path([0, 1, 2], table, paths, sizes)
    assert paths.tolist() == [[9, 1], [4, 1], [5, 6]]  # The second is on it already, the third has no scores.
    assert [sizes[path] for path in (9, 2, 1)] == [1, 0, 2]


def test_paths_that_have_room_stay():
    assert room_near([4, 8], PathSizes([4, 4, 8]), room=3) == [4, 8]


def test_a_full_path_is_replaced_by_the_smallest_with_the_longest_common_prefix():
    # Of the paths 3, 4 and 5 with the first node 1, path 4 is full and path 5 holds one item.
    assert room_near([4], PathSizes([4, 4, 5]), room=2) == [3]
    # All of them are full, so the first node changes too.
    assert room_near([4], PathSizes([3, 4, 5, 0, 1, 2, 6, 7]), room=1) == [8]


def test_paths_with_room_are_distinct():
    for seed in range(20):
        assert len(set(room_near([0, 1, 2], PathSizes([0, 0, 1, 1, 2, 2]), room=2, seed=seed))) == 3


def test_without_room_anywhere_the_smallest_path_is_taken():
    assert room_near(
        [4], PathSizes([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 7, 8, 8]), room=1, num_nodes=9, depth=1
    ) == [6]


def test_the_whole_catalogue_fits_where_every_path_is_needed():
    assert sorted(room_near(range(9), PathSizes(np.arange(9)), room=1)) == list(range(9))
