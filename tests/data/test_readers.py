"""Reading: filters, order and notes."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data import read
from pathdex.errors import DataError
from tests.data.test_formats import histories


def frame(*rows):
    return pl.DataFrame(list(rows), schema=["user", "item", "time", "rating"], orient="row")


events = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=40
)


def reference(rows, min_rating, min_interactions):
    """The protocol, row by row."""
    kept = [row for row in rows if row[3] >= min_rating]
    users = sorted({row[0] for row in kept})
    result = {}
    for user in users:
        mine = sorted((row for row in kept if row[0] == user), key=lambda row: row[2])
        if len(mine) >= min_interactions:
            result[user] = [row[1] for row in mine]
    return result


@settings(max_examples=60, deadline=None)
@given(events, st.integers(1, 5), st.integers(1, 4))
def test_reading_agrees_with_the_protocol_row_by_row(rows, min_rating, min_interactions):
    expected = reference(rows, min_rating, min_interactions)
    if not expected:
        with pytest.raises(DataError, match="is kept"):
            read(frame(*rows), min_rating=min_rating, min_interactions=min_interactions)
        return
    data = read(frame(*rows), min_rating=min_rating, min_interactions=min_interactions)
    assert histories(data) == expected
    assert data.items.ids(range(data.num_items)) == sorted({item for row in expected.values() for item in row})
    assert data.users.ids(range(data.num_users)) == sorted(expected)
    for start, end in zip(data.sequences.offsets[:-1], data.sequences.offsets[1:], strict=True):
        assert (data.times[start:end][1:] >= data.times[start:end][:-1]).all()


@settings(max_examples=30, deadline=None)
@given(events, st.randoms())
def test_codes_do_not_depend_on_the_row_order(rows, random):
    shuffled = random.sample(rows, len(rows))
    first, second = read(frame(*rows)), read(frame(*shuffled))
    for one, other in ((first.users, second.users), (first.items, second.items)):
        assert one.ids(range(len(one))) == other.ids(range(len(other)))


@settings(max_examples=30, deadline=None)
@given(events)
def test_duplicates_are_kept_and_counted(rows):
    data = read(frame(*rows))
    assert data.num_interactions == len(rows)
    assert data.notes["duplicate_rows"] == len(rows) - len({row[:3] for row in rows})


def test_without_time_the_row_order_is_kept():
    data = read(pl.DataFrame({"user": [1, 2, 1, 1], "item": ["b", "z", "a", "b"]}))
    assert histories(data) == {1: ["b", "a", "b"], 2: ["z"]}
    assert data.times is None
    assert data.notes["duplicate_rows"] == 1


def test_dropped_rows_are_noted():
    data = read(
        frame((1, 10, 1, 5), (1, 11, 2, 5), (1, 99, 3, 5), (2, 10, 1, 5), (2, 11, 2, 1), (3, 10, 1, 2)),
        min_rating=3,
        min_item_interactions=2,
        min_interactions=1,
    )
    # Items 11 and 99 have one good rating each, so user 1 keeps item 10 only.
    assert histories(data) == {1: [10], 2: [10]}
    assert data.notes == {
        "rows": 6,
        "dropped_low_rating": 2,
        "dropped_rare_items": 2,
        "dropped_short_users": 0,
        "duplicate_rows": 0,
    }


def test_items_are_filtered_before_users():
    rows = [(1, 10, 1, 5), (1, 11, 2, 5), (2, 10, 1, 5), (2, 12, 2, 5)]
    with pytest.raises(DataError) as caught:
        read(frame(*rows), min_item_interactions=2, min_interactions=2)
    assert str(caught.value) == (
        "none of the 4 rows of the DataFrame is kept with min_rating=None, min_interactions=2, "
        "min_item_interactions=2; lower them"
    )


def test_a_user_with_one_interaction_is_kept():
    assert histories(read(frame((1, 10, 1, 5)))) == {1: [10]}


def test_text_ids_are_kept_by_filters():
    data = read(
        pl.DataFrame({"user": ["é", "b", "b"], "item": ["zz", "ü", "a"], "time": [1, 2, 1]}), min_interactions=2
    )
    assert histories(data) == {"b": ["a", "ü"]}


def test_options_are_checked_together():
    with pytest.raises(DataError) as caught:
        read(frame((1, 2, 3, 4)), min_rating="4", min_interactions=0, min_item_interactions=1.5)
    assert tuple(map(str, caught.value.problems)) == (
        "min_rating='4': must be a number; leave it out to keep all",
        "min_interactions=0: must be a whole number of at least 1; leave it out to keep all",
        "min_item_interactions=1.5: must be a whole number of at least 1; leave it out to keep all",
    )
