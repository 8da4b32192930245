"""The hash table against a dictionary."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from pathdex.kernels.hashing import EMPTY, find_item, find_slot, new_slots, new_table, rows_with_repeats


@njit
def insert(table: np.ndarray, keys: np.ndarray, values: np.ndarray) -> None:
    for i in range(len(keys)):
        slot = find_slot(table, keys[i])
        table[slot, 0], table[slot, 1] = keys[i], values[i]


@njit
def look_up(table: np.ndarray, keys: np.ndarray) -> np.ndarray:
    found = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        slot = find_slot(table, keys[i])
        found[i] = EMPTY if table[slot, 0] == EMPTY else table[slot, 1]
    return found


def test_a_new_table_is_empty_and_at_most_half_full() -> None:
    assert new_table(0).shape == (16, 2)
    assert new_table(8).shape == (16, 2)
    assert new_table(9).shape == (32, 2)
    assert (new_table(9) == EMPTY).all()


@settings(max_examples=100, deadline=None)
# Keys that differ by a multiple of the table's size collide in a table without a good hash.
@given(st.lists(st.tuples(st.integers(0, 2**62) | st.integers(0, 9).map(lambda one: one << 40), st.integers(0, 99))))
def test_a_table_equals_a_dictionary(pairs: list[tuple[int, int]]) -> None:
    table, expected = new_table(len(pairs)), dict(pairs)
    insert(table, np.array([key for key, _ in pairs], np.int64), np.array([value for _, value in pairs], np.int64))
    keys = [*expected, 2**62 + 1]
    assert look_up(table, np.array(keys, np.int64)).tolist() == [*expected.values(), EMPTY]
    assert (table[:, 0] != EMPTY).sum() == len(expected)


@njit
def positions_of(keys: np.ndarray) -> np.ndarray:
    """The position of the first key equal to each, numbered in order of appearance."""
    slots, shift = new_slots(len(keys))
    distinct, found, count = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64), 0
    for i in range(len(keys)):
        slot = find_item(slots, shift, distinct, keys[i])
        if slots[slot] == 0:
            distinct[count] = keys[i]
            count += 1
            slots[slot] = count
        found[i] = slots[slot] - 1
    return found


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 9).map(lambda one: one << 20)))
def test_slots_equal_a_dictionary(keys: list[int]) -> None:
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    assert positions_of(np.array(keys, np.int32)).tolist() == [numbers[key] for key in keys]


def test_slots_are_at_most_half_full() -> None:
    assert [len(new_slots(entries)[0]) for entries in (0, 8, 9, 1000)] == [16, 16, 32, 2048]


def test_rows_that_repeat_a_code() -> None:
    codes = np.array([[1, 2, 3], [4, 5, 4], [-1, 7, -1], [-1, -1, -1], [9, 9, -1]])
    assert rows_with_repeats(codes).tolist() == [False, True, False, False, True]
