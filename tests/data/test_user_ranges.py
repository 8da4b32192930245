"""Rows to files by ranges of users."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pathdex.data import user_ranges
from pathdex.data.user_ranges import (
    Division,
    batches_of,
    coded_items,
    divide,
    item_counts,
    sampled_users,
    small_ranges,
    splitters_of,
    stored_batches,
)
from pathdex.errors import DataError


def rows(users: list[int]) -> pl.DataFrame:
    return pl.DataFrame({"user": users, "item": range(len(users))})


def ignore(count: int) -> None:
    return


def divided(frame: pl.DataFrame, splitters: list[int], folder, report=ignore) -> list[list[int]]:
    division = Division(pl.Series(splitters, dtype=pl.Int64), folder / "ranges", "the source")
    found = divide(iter(frame.iter_slices(4)), division, report)
    assert [one.rows for one in found] == [sum(len(b) for b in stored_batches(one)) for one in found]
    return [[row for batch in stored_batches(one) for row in batch.rows()] for one in found]


def test_every_range_has_its_users_in_the_order_of_the_rows(tmp_path):
    found = divided(rows([3, 1, 2, 3, 9, 1, 5, 2]), [2, 5], tmp_path)
    assert found == [[(1, 1), (1, 5)], [(3, 0), (2, 2), (3, 3), (2, 7)], [(9, 4), (5, 6)]]


def test_a_range_without_rows_has_no_file(tmp_path):
    assert divided(rows([1, 9]), [2, 5], tmp_path) == [[(1, 0)], [], [(9, 1)]]
    assert sorted(file.name for file in (tmp_path / "ranges").iterdir()) == ["0.arrow", "2.arrow"]


def test_the_rows_read_are_reported(tmp_path):
    reports: list[int] = []
    divided(rows([1, 2, 3, 4, 5, 6]), [3], tmp_path, reports.append)
    assert reports == [4, 2]


def test_splitters_give_ranges_of_equal_size():
    assert splitters_of(pl.Series([4, 1, 3, 2, 8, 7, 6, 5]), 4).to_list() == [3, 5, 7]
    assert splitters_of(pl.Series(["b", "a", "b", "b"]), 2).to_list() == ["b"]
    assert splitters_of(pl.Series([1, 2, 3]), 1).to_list() == []


def test_large_ranges_are_divided_again(tmp_path, monkeypatch):
    monkeypatch.setattr(user_ranges, "FAN_OUT", 2)
    users = np.random.default_rng(0).permutation(np.repeat(np.arange(64), 5))
    division = Division(pl.Series([], dtype=pl.Int64), tmp_path / "first", "the source")
    (whole,) = divide(iter([rows(users.tolist())]), division, ignore)
    parts = []
    for part in small_ranges(whole, 20, tmp_path / "parts", ignore):
        parts.append(pl.concat(list(stored_batches(part))))
    assert max(map(len, parts)) <= 40
    assert [one for part in parts for one in sorted(set(part["user"]))] == list(range(64))
    assert not whole.files[0].exists()


def test_one_user_is_one_range(tmp_path):
    division = Division(pl.Series([], dtype=pl.Int64), tmp_path / "first", "the source")
    (whole,) = divide(iter([rows([7] * 100)]), division, ignore)
    assert [part.rows for part in small_ranges(whole, 10, tmp_path / "parts", ignore)] == [100]


def test_items_are_counted_and_coded():
    frame = pl.DataFrame({"user": [1, 1, 2], "item": ["b", "a", "b"]}).lazy()
    counts = item_counts(frame, "the source").sort("item")
    assert counts.rows() == [("a", 1), ("b", 2)]
    known = pl.DataFrame({"item": ["b"], "code": pl.Series([0], dtype=pl.Int32)})
    assert coded_items(frame, known).collect().rows() == [(1, 0), (1, -1), (2, 0)]


def test_a_sample_has_every_so_manieth_row():
    assert sampled_users(rows(list(range(10))).lazy(), 4, "the source").to_list() == [0, 4, 8]


def test_a_source_that_breaks_on_the_way_is_a_data_error(tmp_path):
    def fail(_: pl.DataFrame) -> pl.DataFrame:
        raise pl.exceptions.ComputeError("cut short")

    broken = rows([1, 2]).lazy().map_batches(fail)
    with pytest.raises(DataError, match="the source cannot be read"):
        list(batches_of(broken, "the source"))
