"""Arrays as compiled code takes them."""

from pathlib import Path

import numpy as np
import pytest
from numba import njit

from pathdex.kernels.layout import LINE, as_matrix, as_readonly, as_weights, entry_point


def test_a_readonly_view_shares_memory_and_leaves_the_original_writable() -> None:
    array = np.arange(6, dtype=np.float32)
    view = as_readonly(array)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    array[0] = 7
    assert view[0] == 7


def test_another_type_or_layout_is_copied() -> None:
    converted = as_readonly(np.arange(6), np.int32)
    assert converted.dtype == np.int32
    transposed = as_readonly(np.arange(6, dtype=np.float32).reshape(2, 3).T)
    assert transposed.flags.c_contiguous
    assert transposed.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_mapped_array_becomes_a_plain_array_without_a_copy(tmp_path: Path) -> None:
    np.save(tmp_path / "array.npy", np.arange(4, dtype=np.float32))
    mapped = np.load(tmp_path / "array.npy", mmap_mode="r")
    view = as_readonly(mapped)
    assert type(view) is np.ndarray
    assert np.shares_memory(view, mapped)


@pytest.mark.parametrize("size", [0, 1, 5, 16, 1000])
def test_weights_are_read_only_copies_that_begin_on_a_cache_line(size: int) -> None:
    array = np.arange(2 * size, dtype=np.float32).reshape(2, size)
    weights = as_weights(array)
    assert weights.ctypes.data % LINE == 0 or size == 0
    assert weights.tolist() == array.tolist()
    assert weights.flags.c_contiguous
    assert not weights.flags.writeable
    assert not np.shares_memory(weights, array)


def test_torch_weights_are_transposed() -> None:
    assert as_matrix(np.array([[1, 2, 3], [4, 5, 6]])).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert as_matrix(np.zeros((5, 2, 3))).shape == (5, 3, 2)


def test_an_entry_point_gives_the_result_of_the_function() -> None:
    @njit
    def first(array: np.ndarray, add: int) -> float:
        return array[0] + add

    call = entry_point(first, as_readonly(np.zeros(1)), 0)
    assert call(as_readonly(np.array([2.0])), 3) == 5
    assert call(np.array([4.0, 1.0], np.float32), 3) == 7  # writable
