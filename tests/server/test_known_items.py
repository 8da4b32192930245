"""What a router remembers of the items in histories."""

from __future__ import annotations

import numpy as np

from pathdex.recommenders.whole_model import KnownHistory
from pathdex.server.known_items import KnownItems, history_of

DIM = 2


def known(codes: list[int], latest: int) -> KnownHistory:
    """A history in which item c has the vector (c, -c) and c neighbours, all of them c."""
    distinct = np.unique(np.array(codes[-latest:], np.int64))
    rows = np.stack([distinct, -distinct], 1).astype(np.float32)
    return KnownHistory(
        np.array(codes), distinct, rows, distinct, np.repeat(distinct, distinct).astype(np.int32),
        np.repeat(distinct / 4, distinct).astype(np.float32),
    )  # fmt: skip


def test_a_history_of_remembered_items_is_the_one_of_the_shards() -> None:
    memory = KnownItems(10)
    memory.remember(["a", "x", "c", "a"], np.array([1, -1, 3, 1]), known([1, 3, 1], 10))
    memory.remember(["b"], np.array([2]), known([2], 10))
    found = memory.find(["c", "x", "b", "c"], 10)
    assert found is not None
    for mine, theirs in zip(history_of(found, 10, DIM), known([3, 2, 3], 10), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_an_empty_history_needs_no_shard() -> None:
    found = KnownItems(0).find([], 5)
    assert found == []
    assert history_of(found, 5, DIM).rows.shape == (0, DIM)


def test_the_items_that_were_used_last_are_kept() -> None:
    memory = KnownItems(2)
    memory.remember(["a", "b"], np.array([1, 2]), known([1, 2], 10))
    assert memory.find(["a"], 10) is not None
    memory.remember(["c"], np.array([3]), known([3], 10))
    assert memory.find(["b"], 10) is None
    assert memory.find(["a", "c"], 10) is not None
    assert len(memory) == 2


def test_only_the_latest_items_need_vectors() -> None:
    memory = KnownItems(10)
    memory.remember(["a", "b", "c"], np.array([1, 2, 3]), known([1, 2, 3], 2))
    assert memory.find(["a", "b", "c"], 2) is not None
    assert memory.find(["a", "b", "c"], 3) is None
    memory.remember(["a"], np.array([1]), known([1], 2))
    assert memory.find(["a", "b", "c"], 3) is not None
    memory.remember(["a", "b", "c"], np.array([1, 2, 3]), known([1, 2, 3], 2))
    assert memory.find(["a", "b", "c"], 3) is not None


def test_nothing_is_remembered_if_that_is_not_wanted() -> None:
    memory = KnownItems(0)
    memory.remember(["a"], np.array([1]), known([1], 1))
    assert len(memory) == 0
