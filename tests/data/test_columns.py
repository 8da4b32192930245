"""Finding the columns of users, items, times and ratings."""

import polars as pl
import pytest

from pathdex.data import read
from pathdex.data.columns import guess_column
from pathdex.errors import DataError


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["userId", "movieId", "rating", "timestamp"], ("userId", "movieId", "timestamp", "rating")),
        (["USER_ID", "ITEM_ID", "ts"], ("USER_ID", "ITEM_ID", "ts", None)),
        (["session_id", "track_id"], ("session_id", "track_id", None, None)),
        (["session_id", "user_id", "item"], ("user_id", "item", None, None)),
        (["reviewerID", "asin", "overall", "unixReviewTime"], ("reviewerID", "asin", "unixReviewTime", "overall")),
    ],
)
def test_common_names_are_found(columns, expected):
    assert tuple(guess_column(role, columns) for role in ("user", "item", "time", "rating")) == expected


def test_given_names_take_precedence():
    frame = pl.DataFrame({"user_id": [1], "buyer": ["b"], "item_id": [2], "thing": ["t"], "when": [3.0]})
    data = read(frame, user="buyer", item="thing", time="when")
    assert (data.users.id(0), data.items.id(0), data.times.tolist()) == ("b", "t", [3.0])


def test_all_missing_columns_are_reported_together():
    frame = pl.DataFrame({"buyers": [1], "a": [2]})
    with pytest.raises(DataError) as caught:
        read(frame, user="buyer", time="when", min_rating=3)
    assert tuple(map(str, caught.value.problems)) == (
        "user='buyer': the DataFrame has no such column; its columns are: buyers, a; did you mean 'buyers'?",
        "no item column found in the DataFrame; its columns are: buyers, a; name it with item= or --item",
        "time='when': the DataFrame has no such column; its columns are: buyers, a",
        "no rating column found in the DataFrame; its columns are: buyers, a; name it with rating= or --rating",
    )


def test_one_column_for_two_roles_is_an_error():
    with pytest.raises(DataError, match="the column 'id' of the DataFrame is used for user=, item=; name one for each"):
        read(pl.DataFrame({"id": [1]}), user="id", item="id")


def test_a_table_without_columns():
    with pytest.raises(DataError, match="no user column found in the DataFrame; its columns are: none"):
        read(pl.DataFrame())
