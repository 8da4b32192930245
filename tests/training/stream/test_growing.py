"""Arrays that grow."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pathdex.training.stream.growing import FIRST_CAPACITY, GrowingArray


@given(st.lists(st.integers(0, 3 * FIRST_CAPACITY), min_size=1, max_size=8))
def test_rows_are_kept_and_new_rows_have_the_fill_value(sizes):
    array, expected = GrowingArray((2,), np.int64, fill=-1), np.empty((0, 2), np.int64)
    for number, size in enumerate(sizes):
        grown = np.full((size, 2), -1)
        grown[: len(expected)] = expected[:size]
        values = array.resize(size)
        assert np.array_equal(values, grown)
        values[size // 2 :] = number
        grown[size // 2 :] = number
        expected = grown
    assert np.array_equal(array.values, expected)


def test_memory_doubles():
    array = GrowingArray((), np.float32)
    array.resize(FIRST_CAPACITY + 1)
    assert array.capacity == 2 * FIRST_CAPACITY


def test_loading_replaces_all_rows():
    array = GrowingArray((1,), np.float32)
    array.resize(3)[:] = 7
    assert array.load(np.ones((2, 1))).tolist() == [[1], [1]]
    assert array.resize(3).tolist() == [[1], [1], [0]]
