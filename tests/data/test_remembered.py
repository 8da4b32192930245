"""Later sources are read like the training data."""

import polars as pl
import pytest

from pathdex.data import read
from pathdex.data.reading import Reading
from pathdex.data.remembered import read_like
from tests.data.test_formats import histories

ROWS = pl.DataFrame({"who": [1, 1, 2], "sku": [7, 8, 9], "stars": [5, 1, 4], "user": [0, 0, 0]})
LIKED = Reading(user="who", item="sku", rating="stars", min_rating=4, min_interactions=10, separator=";")


def test_columns_and_ratings_apply_and_counts_do_not():
    found = read_like(LIKED, ROWS)
    assert found.applied == {"user": "who", "item": "sku", "rating": "stars", "min_rating": 4}
    assert str(found) == "read like the training data: user='who', item='sku', rating='stars', min_rating=4"
    assert histories(read(ROWS, like=LIKED)) == {1: [7], 2: [9]}


def test_given_options_win():
    assert histories(read(ROWS, like=LIKED, min_rating=5)) == {1: [7]}
    assert histories(read(ROWS, like=LIKED, user="user")) == {0: [7, 9]}


def test_other_columns_are_found_by_name():
    later = ROWS.select(user="who", item="sku")
    found = read_like(LIKED, later)
    assert not found.applied
    assert str(found) == "min_rating is not applied: the DataFrame has no column of ratings"
    assert histories(read(later, like=LIKED)) == {1: [7, 8], 2: [9]}


@pytest.mark.parametrize("separator", [";", "^"])
def test_options_of_text_files_apply_to_text_files_only(tmp_path, separator):
    known = Reading(separator=separator, format="csv")
    ROWS.write_csv(tmp_path / "rows.data", separator=separator)
    ROWS.write_parquet(tmp_path / "rows.parquet")
    assert read_like(known, tmp_path / "rows.data").applied == {"format": "csv", "separator": separator}
    assert read_like(known, tmp_path / "rows.parquet").applied == {}
    assert read(tmp_path / "rows.data", like=known, user="who").num_users == 2
