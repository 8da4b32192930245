"""Stored paths and postings must be the inverse of each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.index.initialization import random_paths
from pathdex.index.postings import Postings
from pathdex.index.postings_checks import postings_problems
from pathdex.storage import array_spec


def example(num_items: int = 12, seed: int = 0, unplaced: int = 2) -> list[Any]:
    paths = random_paths(num_items, 2, 3, 2, seed=seed)
    paths[:unplaced] = -1
    postings = Postings.from_paths(paths, 3, 2)
    return [paths, postings.paths.copy(), postings.offsets.copy(), postings.items.copy()]


@given(st.integers(1, 30), st.integers(0, 9), st.integers(1, 40))
def test_an_index_has_no_problems_whatever_the_blocks(num_items: int, seed: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_spec, "BLOCK", block)
        assert postings_problems(*example(num_items, seed, min(2, num_items - 1))) == []


@given(st.integers(1, 40), st.data())
def test_any_other_item_on_a_path_is_a_problem(block: int, data: st.DataObject) -> None:
    paths, used, offsets, items = example()
    entry = data.draw(st.integers(0, len(items) - 1))
    other = data.draw(st.integers(0, len(paths) - 1).filter(lambda item: item != items[entry]))
    items[entry] = other
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_spec, "BLOCK", block)
        assert postings_problems(paths, used, offsets, items) != []


@given(st.integers(1, 40), st.data())
def test_any_other_path_of_an_item_is_a_problem(block: int, data: st.DataObject) -> None:
    paths, *postings = example()
    item, place = data.draw(st.integers(0, len(paths) - 1)), data.draw(st.integers(0, 1))
    paths[item, place] = data.draw(st.integers(-1, 8).filter(lambda path: path != paths[item, place]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_spec, "BLOCK", block)
        assert postings_problems(paths, *postings) != []


def test_each_problem_is_named() -> None:
    paths, used, offsets, items = example()
    half, twice = paths.copy(), paths.copy()
    half[5, 0], twice[5, 1] = -1, twice[5, 0]
    assert postings_problems(half, used, offsets, items) == ["paths: item 5 must have all its 2 paths or none"]
    assert postings_problems(twice, used, offsets, items) == ["paths: item 5 has a path twice"]
    more = np.append(items, 3).astype(np.int32)
    found = postings_problems(paths, used, offsets, more)
    assert found == ["postings.items: has 21 entries, must have 20, one for each path of an item"]
    unsorted = items.copy()
    unsorted[[0, 1]] = unsorted[[1, 0]]
    assert offsets[1] >= 2
    rule = "postings.items: must be ascending and distinct on each path"
    assert postings_problems(paths, used, offsets, unsorted) == [rule]
