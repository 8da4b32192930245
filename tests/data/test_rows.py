import polars as pl
import pytest

from pathdex.data import read
from pathdex.errors import DataError

FILL_IN = "fill in or remove these rows, or drop them with drop_missing=True (--drop-missing)"


def problems(frame, **options):
    with pytest.raises(DataError) as caught:
        read(frame, **options)
    return list(map(str, caught.value.problems))


def problem(frame, **options):
    (only,) = problems(frame, **options)
    return only


def csv(tmp_path, text):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    return path


def test_every_problem_is_reported_at_once(tmp_path):
    path = csv(
        tmp_path,
        "user,item,time,rating\n"
        "a,x,1,4\n"  # 1
        ",x,2,5\n"  # 2: no user
        "b,,3,5\n"  # 3: no item
        "b,y,,5\n"  # 4: no time
        "b,y,soon,5\n"  # 5: not a time
        "b,y,4,good\n"  # 6: text
        "b,y,5,-1\n"  # 7: below 0
        "b,y,6,\n",  # 8: no rating
    )
    assert problems(path, min_rating=4) == [
        f"column 'user' of {path}: 1 of 8 rows have no user id (rows 2, the first row of data is 1); " + FILL_IN,
        f"column 'item' of {path}: 1 of 8 rows have no item id (rows 3, the first row of data is 1); " + FILL_IN,
        f"column 'time' of {path}: 1 of 8 rows have no timestamp (rows 4, the first row of data is 1); "
        f"{FILL_IN}, or drop the column to keep the order of the rows",
        f"column 'time' of {path}: 1 of 8 rows have a timestamp that cannot be parsed (rows 5, the first row of "
        "data is 1); write all as numbers, or all as ISO 8601 such as 2014-07-23T18:00:00",
        f"column 'rating' of {path}: 1 of 8 rows have no rating or NaN (rows 8, the first row of data is 1); "
        + FILL_IN,
        f"column 'rating' of {path}: 1 of 8 rows have a rating that is not a number (rows 6, the first row of data "
        "is 1); write ratings as numbers",
    ]


def test_only_the_first_rows_are_listed():
    frame = pl.DataFrame({"user": [1] * 9, "item": [None] * 8 + [2]}, schema_overrides={"item": pl.Int64})
    assert "8 of 9 rows have no item id (rows 1, 2, 3, 4, 5, ..., the first row of data is 1)" in problem(frame)


def test_a_column_of_nulls_only():
    frame = pl.DataFrame({"user": [None, None], "item": [1, 2], "time": [None, None], "rating": [None, None]})
    found = problems(frame, min_rating=1)
    assert [one.split(" of ")[0] for one in found] == ["column 'user'", "column 'time'", "column 'rating'"]


def test_no_rows(tmp_path):
    assert problem(csv(tmp_path, "user,item\n")) == f"{tmp_path / 'rows.csv'} has no rows"
    assert problem(pl.DataFrame({"user": [], "item": []})) == "the DataFrame has no rows"


def test_rows_that_lack_a_value_can_be_dropped(tmp_path):
    path = csv(tmp_path, "user,item,time\n1,7,1\n,7,2\n2,,3\n2,8,\n2,9,4\n")
    data = read(path, drop_missing=True)
    assert data.notes["dropped_missing"] == 3
    assert (data.users.ids([0, 1]), data.items.ids([0, 1])) == ([1, 2], [7, 9])
    assert problems(csv(tmp_path, "user,item\n,7\n"), drop_missing=True) == [
        f"{path} has no rows in which no value is missing, of 1"
    ]
