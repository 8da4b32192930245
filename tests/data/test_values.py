"""Ids, times and ratings: the rules for each, and the type that it is read as."""

from datetime import date, datetime, timezone
from decimal import Decimal

import pandas as pd
import polars as pl
import pytest

from pathdex.data import read
from pathdex.data.findings import Finding
from pathdex.data.values import id_values, rating_values, time_values
from pathdex.errors import DataWarning
from tests.data.test_rows import csv, problem, problems


def test_rules_carry_their_codes():
    assert [rule.code for rule in id_values("user", "u", pl.Float64(), text_file=False).rules] == ["D201", "D203"]
    assert [rule.code for rule in time_values("time", "t", pl.String(), "5").rules] == ["D204", "D205"]
    assert [rule.code for rule in rating_values("rating", "r", pl.String()).rules] == ["D206", "D207", "D416"]


def test_an_impossible_type_is_a_finding():
    found = id_values("user", "u", pl.Boolean(), text_file=False)
    assert isinstance(found, Finding)
    assert (found.code, found.problem.remedy) == ("D202", "cast it")


@pytest.mark.parametrize("values", [[1.0, float("nan")], [1.0, float("inf")], [1.0, None]])
def test_times_must_be_finite(values):
    frame = pl.DataFrame({"user": [1, 1], "item": [1, 2], "time": values})
    assert "1 of 2 rows have no timestamp or NaN (rows 2," in problem(frame)


def test_nan_in_pandas_is_missing():
    frame = pd.DataFrame({"user": [1, 1, 2], "item": [1.0, 2.0, None], "time": [1.0, None, 3.0]})
    found = problems(frame)
    assert "column 'item' of the DataFrame: 1 of 3 rows have no item id (rows 3," in found[0]
    assert "column 'time' of the DataFrame: 1 of 3 rows have no timestamp or NaN (rows 2," in found[1]


def test_ids_are_whole_numbers_or_text():
    assert "1 of 2 rows have a fraction for an id (rows 2," in problem(
        pl.DataFrame({"user": [1.0, 1.5], "item": [1, 2]})
    )
    assert "1 of 1 rows have a fraction for an id" in problem(pl.DataFrame({"user": [1e300], "item": [1]}))
    assert "1 of 2 rows have an id past 2^63 (rows 1," in problem(
        pl.DataFrame({"user": pl.Series([2**64 - 1, 5], dtype=pl.UInt64), "item": [1, 2]})
    )


@pytest.mark.parametrize("values", [[[1], [2]], [True, False], [date(2020, 1, 1)] * 2, [b"a", b"b"]])
def test_types_that_cannot_be_ids(values):
    message = problem(pl.DataFrame({"user": [1, 2], "item": values}))
    assert "cannot be an id; item ids must be whole numbers or text; cast it" in message


def test_types_that_cannot_be_times_or_ratings():
    frame = pl.DataFrame({"user": [1], "item": [2], "time": [True], "rating": [[1]]})
    first, second = problems(frame, min_rating=1)
    assert first == "column 'time': Boolean cannot be a time; use numbers, dates or ISO 8601 text"
    assert second == "column 'rating': List(Int64) cannot be a rating; use numbers"


def test_whole_floats_become_integer_ids():
    data = read(pl.DataFrame({"user": [3.0, 7.0], "item": ["a", "b"]}))
    assert data.users.ids([0, 1]) == [3, 7]


def test_text_ids_of_typed_sources_stay_text():
    data = read(pl.DataFrame({"user": ["3", "7"], "item": [1, 2]}))
    assert data.users.ids([0, 1]) == ["3", "7"]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["7", "12"], [7, 12]),
        (["7", "-12"], [-12, 7]),
        (["07", "12"], ["07", "12"]),
        (["7", "x"], ["7", "x"]),
        (["7", "1.5"], ["1.5", "7"]),
        (["07", "1.0"], ["07", "1.0"]),
        (["7", "99999999999999999999"], ["7", "99999999999999999999"]),
    ],
)
def test_ids_in_text_files_become_integers_only_if_all_print_as_the_same_text(tmp_path, ids, expected):
    data = read(csv(tmp_path, "user,item\n" + "".join(f"{one},1\n" for one in ids)))
    assert data.users.ids(range(len(data.users))) == expected


def test_whole_numbers_with_a_point_are_integers_in_text_files_as_in_frames(tmp_path):
    with pytest.warns(DataWarning, match=r"user ids such as 12\.0 are read as whole numbers"):
        data = read(csv(tmp_path, "user,item\n12.0,1\n7,1\n"))
    assert data.users.ids([0, 1]) == read(pl.DataFrame({"user": [12.0, 7.0], "item": [1, 1]})).users.ids([0, 1])


MOMENT = 1_388_570_400  # 2014-01-01 10:00:00 UTC


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (MOMENT, MOMENT),
        (MOMENT + 0.5, MOMENT + 0.5),
        (date(2014, 1, 1), MOMENT - 36_000),
        (datetime(2014, 1, 1, 10), MOMENT),
        (datetime(2014, 1, 1, 10, tzinfo=timezone.utc), MOMENT),
        (str(MOMENT), MOMENT),
        ("1388570400.25", MOMENT + 0.25),
        ("2014-01-01", MOMENT - 36_000),
        ("2014-01-01T10:00", MOMENT),
        ("2014-01-01 10:00", MOMENT),
        ("2014-01-01T10:00:00", MOMENT),
        ("2014-01-01 10:00:00.250", MOMENT + 0.25),
        ("2014-01-01T10:00:00Z", MOMENT),
        ("2014-01-01T12:00:00+02:00", MOMENT),
        ("2014-01-01T12:00:00.5+0200", MOMENT + 0.5),
    ],
)
def test_times_in_every_form(value, seconds):
    data = read(pl.DataFrame({"user": [1], "item": [1], "time": [value]}))
    assert data.times.tolist() == [seconds]


def test_large_integer_times_sort_exactly():
    start = 1_700_000_000_000_000_000
    frame = pl.DataFrame({"user": [1] * 3, "item": [30, 20, 10], "time": [start + 2, start + 1, start]})
    assert read(frame).items.ids(read(frame).sequences[0]) == [10, 20, 30]


def test_decimal_ratings_are_numbers():
    frame = pl.DataFrame({"user": [1, 1], "item": [1, 2], "rating": [Decimal("3.5"), Decimal("4.5")]})
    assert read(frame, min_rating=4).num_interactions == 1


def test_unused_ratings_are_not_checked():
    frame = pl.DataFrame({"user": [1], "item": [2], "score": ["good"]})
    assert read(frame).num_interactions == 1
    frame = pl.DataFrame({"user": [1], "item": [2], "score": [-3]})
    with pytest.warns(DataWarning, match="1 of 1 rows have a rating below 0 and are kept"):
        assert read(frame, rating="score").num_interactions == 1


def test_numbers_and_dates_in_one_column_are_an_error():
    frame = pl.DataFrame({"user": [1, 1, 1], "item": [1, 2, 3], "time": [None, "2014-01-01", "5"]})
    missing, odd = problems(frame)
    assert "1 of 3 rows have no timestamp (rows 1," in missing
    assert "1 of 3 rows have a timestamp that cannot be parsed (rows 3," in odd
