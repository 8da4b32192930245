"""The options of `read` as one object."""

import polars as pl
import pytest

from pathdex.data import read
from pathdex.data.reading import Reading
from pathdex.errors import DataError


def test_data_remembers_how_it_was_read():
    frame = pl.DataFrame({"who": [1, 1], "sku": [2, 3], "at": [1000, 2000], "stars": [5, 1]})
    data = read(frame, user="who", time="at", min_rating=4, time_unit="ms")
    expected = {"user": "who", "item": "sku", "time": "at", "rating": "stars", "min_rating": 4, "time_unit": "ms"}
    assert data.reading.to_dict() == expected
    assert Reading.from_dict(expected) == data.reading
    assert data.times.tolist() == [1.0]
    assert str(Reading(user="who", min_rating=4)) == "user='who', min_rating=4"
    assert str(Reading()) == "as found"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_unit": "hours"}, "time_unit='hours': must be one of s, ms, us, ns; leave it out for dates"),
        ({"drop_missing": "yes"}, "drop_missing='yes': must be true or false"),
        ({"user": 1}, "user=1: must be text"),
        ({"min_rating": "4"}, "min_rating='4': must be a number"),
        ({"min_rating": float("nan")}, "min_rating=nan: must be a finite number"),
        ({"min_rating": float("inf")}, "min_rating=inf: must be a finite number"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(DataError, match=message):
        Reading(**options)


def test_stored_options_are_checked():
    with pytest.raises(DataError, match="no such option of read; did you mean 'min_rating'"):
        Reading.from_dict({"min_ratings": 4})
