"""Changed paths against postings that are inverted again."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.index.initialization import random_paths
from pathdex.index.postings import Postings
from pathdex.kernels.beam import Trie
from pathdex.kernels.live_postings import (
    STEP,
    PathPlaces,
    Segments,
    Touched,
    build_trie,
    make_writable,
    merge_paths,
    release,
    rewrite_paths,
    write_rows,
)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(2, 5), st.integers(1, 4), st.integers(0, 5))
def test_the_trie_is_that_of_the_postings(num_items: int, num_nodes: int, depth: int, seed: int) -> None:
    postings = Postings.from_paths(random_paths(num_items, 1, num_nodes, depth, seed), num_nodes, depth)
    wanted = Trie.pack(postings.prefixes, postings.children, num_nodes)
    first_child, label, levels, prefixes = build_trie(postings.paths, num_nodes, depth)
    for found, array in zip((first_child, label, levels), wanted, strict=True):
        assert found.tolist() == array.tolist()
    assert prefixes.tolist() == np.concatenate(postings.prefixes[:-1]).tolist()


def test_the_trie_without_paths_has_a_root() -> None:
    first_child, label, levels, prefixes = build_trie(np.empty(0, np.int64), 4, 3)
    assert (first_child.tolist(), label.tolist(), levels.tolist()) == ([1, 1], [0], [0, 1, 1, 1, 1])
    assert prefixes.tolist() == [0]


def test_a_path_changes_without_a_write_to_its_old_place() -> None:
    # Path 3 holds items 0 and 1, path 5 holds item 2. Item 1 moves to path 4 and item 2 to path 3.
    items, shares = np.zeros(64, np.int32), np.zeros(64, np.float32)
    items[:3], counts = [0, 1, 2], np.array([1, 3, 7])
    old = PathPlaces(np.array([3, 5]), np.array([0, 2]), np.array([2, 3]), np.array([2, 1], np.int32))
    segments = Segments.over(items, shares, 3)
    touched = Touched.pack(np.array([1, 2]), np.array([4, 9]))
    changed, pairs, owners = np.array([3, 4, 5]), np.array([3, 4]), np.array([2, 1], np.int32)
    positions = np.searchsorted(old.paths, changed)
    changes = rewrite_paths(segments, old, counts, touched, changed, positions, pairs, owners)
    assert items[:3].tolist() == [0, 1, 2]
    new, moved = merge_paths(old, changes)
    assert moved
    assert new.paths.tolist() == [3, 4]
    assert [items[a:b].tolist() for a, b in zip(new.starts, new.ends, strict=True)] == [[0, 2], [1]]
    np.testing.assert_allclose(np.exp(shares[new.starts[0] : new.ends[0]]), [2 / 12, 10 / 12], rtol=1e-6)
    assert new.rooms.tolist() == [STEP, STEP]
    release(segments, new, changes._replace(paths=np.array([3]), positions=np.array([0])))
    assert segments.free[1] * STEP == new.starts[0]


def test_rows_are_written_and_pages_are_touched_without_a_change() -> None:
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    make_writable(table, np.array([1, 3]))
    assert table.ravel().tolist() == list(range(12))
    write_rows(table, np.array([2]), np.full((1, 3), 9, np.float32))
    assert table[2].tolist() == [9, 9, 9]
