"""Ranges of users to shards, and shards to one folder."""

from __future__ import annotations

import numpy as np
import polars as pl

from pathdex.data.sorted_shards import ShardOptions, join_shards, sorted_shards
from pathdex.data.user_ranges import Division, divide
from pathdex.data.vocabulary import Vocabulary

ROWS = pl.DataFrame(
    {
        "user": ["b", "a", "b", "c", "a", "b", "c"],
        "item": pl.Series([4, 2, 0, -1, 2, 4, 0], dtype=pl.Int32),
        "time": [5, 9, 1, 3, 2, 5, 3],
    }
)


def shards_of(folder, least=None):
    division = Division(pl.Series(["c"]), folder / "ranges", "the source")
    ranges = divide(iter([ROWS]), division, lambda rows: None)
    options = ShardOptions(10, 5, least, "s")
    reports: list[int] = []
    found = [
        one
        for number, part in enumerate(ranges)
        for one in sorted_shards(part, folder / str(number), options, reports.append)
    ]
    assert sum(reports) == len(ROWS)
    return found


def test_a_shard_is_sorted_by_user_and_time(tmp_path):
    first, second = shards_of(tmp_path)
    assert np.load(first.folder / "values.npy").tolist() == [2, 2, 0, 4, 4]
    assert np.load(first.folder / "ends.npy").tolist() == [2, 5]
    assert np.load(first.folder / "times.npy").tolist() == [2.0, 9.0, 1.0, 5.0, 5.0]
    # One row of c has an item that was dropped.
    assert np.load(second.folder / "values.npy").tolist() == [0]
    assert [(one.users, one.rows, one.all_users, one.duplicates) for one in (first, second)] == [
        (2, 5, 2, 1),
        (1, 1, 1, 0),
    ]


def test_the_files_of_a_range_are_removed(tmp_path):
    shards_of(tmp_path)
    assert list((tmp_path / "ranges").iterdir()) == []


def test_short_users_are_dropped(tmp_path):
    first, second = shards_of(tmp_path, 3)
    assert (first.users, first.rows, first.all_users) == (1, 3, 2)
    assert (second.users, second.rows, second.all_users) == (0, 0, 1)


def test_joined_shards_have_items_without_gaps(tmp_path):
    shards = shards_of(tmp_path)
    (tmp_path / "out").mkdir()
    items = join_shards(shards, Vocabulary(["p", "q", "r", "s", "t"]), tmp_path / "out")
    assert items.ids(range(len(items))) == ["p", "r", "t"]
    arrays = {file.stem: np.load(file) for file in (tmp_path / "out").iterdir()}
    assert arrays["values"].tolist() == [1, 1, 0, 2, 2, 0]
    assert arrays["offsets"].tolist() == [0, 2, 5, 6]
    assert arrays["shards"].tolist() == [0, 2, 3]
    assert bytes(arrays["users.text"]) == b"abc"
    assert arrays["users.offsets"].tolist() == [0, 1, 2, 3]
