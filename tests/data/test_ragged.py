"""Rows of different lengths in two flat arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.data import Ragged
from pathdex.data.ragged import take_slices

rows_of_numbers = st.lists(st.lists(st.integers(0, 1000), max_size=8), max_size=8)


def as_lists(ragged: Ragged) -> list[list[int]]:
    return [row.tolist() for row in ragged]


@given(rows_of_numbers)
def test_rows_round_trip(rows):
    ragged = Ragged.from_rows(rows)
    assert as_lists(ragged) == rows
    assert len(ragged) == len(rows)
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert ragged.values.dtype == np.int32
    assert ragged.offsets.dtype == np.int64


@given(rows_of_numbers, st.data())
def test_take_gives_the_rows_in_the_given_order(rows, data):
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10)) if rows else []
    taken = Ragged.from_rows(rows).take(np.array(wanted, np.int64))
    assert as_lists(taken) == [rows[row] for row in wanted]


@given(rows_of_numbers, st.data())
def test_slices_are_joined_with_their_offsets(rows, data):
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10)) if rows else []
    ragged = Ragged.from_rows(rows)
    beside = np.arange(len(ragged.values)) * 0.5
    starts, lengths = ragged.offsets[:-1][np.array(wanted, np.int64)], ragged.lengths[np.array(wanted, np.int64)]
    joined, offsets = take_slices(beside, starts, lengths)
    expected = [0.5 * place for row in wanted for place in range(ragged.offsets[row], ragged.offsets[row + 1])]
    assert joined.tolist() == expected
    assert np.diff(offsets).tolist() == lengths.tolist()


@given(rows_of_numbers, st.integers(0, 10))
def test_last_keeps_the_end_of_every_row(rows, length):
    assert as_lists(Ragged.from_rows(rows).last(length)) == [row[max(0, len(row) - length) :] for row in rows]


@given(rows_of_numbers, st.data())
def test_split_at_loses_nothing(rows, data):
    cuts = [data.draw(st.integers(0, len(row))) for row in rows]
    head, tail = Ragged.from_rows(rows).split_at(np.array(cuts, np.int64))
    assert as_lists(head) == [row[:cut] for row, cut in zip(rows, cuts, strict=True)]
    assert as_lists(tail) == [row[cut:] for row, cut in zip(rows, cuts, strict=True)]


def test_negative_rows_count_from_the_end():
    ragged = Ragged.from_rows([[1, 2], [], [3]])
    assert ragged[-1].tolist() == [3]
    assert ragged[1].tolist() == []
    with pytest.raises(IndexError):
        ragged[3]
    with pytest.raises(IndexError):
        ragged[-4]


def test_repr_is_short():
    assert repr(Ragged.from_rows([[1, 2], []])) == "Ragged(2 rows, 2 values)"


@given(rows_of_numbers, st.data(), st.integers(1, 5))
def test_slices_are_taken_in_blocks(rows, data, block):
    ragged = Ragged.from_rows(rows)
    wanted = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)) if rows else [], np.int64)
    expected = as_lists(ragged.take(wanted))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pathdex.data.ragged.BLOCK", block)
        assert as_lists(ragged.take(wanted)) == expected
