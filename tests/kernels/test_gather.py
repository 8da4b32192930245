"""Numbering, gathering and scattering rows."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.gather import RowNumbering, add_parts, add_rows, gather_vectors, scatter_vectors, take_rows

codes = st.lists(st.integers(-1, 19), max_size=30).map(lambda values: np.array(values, np.int64))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(codes, codes), min_size=1, max_size=3))
def test_numbers_lead_back_to_the_codes_step_after_step(steps: list[tuple[np.ndarray, np.ndarray]]) -> None:
    numbering = RowNumbering(20)
    for step in steps:
        used, local = numbering(*step)
        assert len(set(used.tolist())) == len(used)
        for one, numbers in zip(step, local, strict=True):
            np.testing.assert_array_equal(np.append(used, -1)[numbers], one)
        seen = dict.fromkeys(code for one in step for code in one.tolist() if code >= 0)
        assert used.tolist() == list(seen)  # in order of appearance


def test_numbers_keep_the_shape_of_the_codes() -> None:
    used, (local,) = RowNumbering(9)(np.array([[7, 3], [-1, 7]]))
    assert used.tolist() == [7, 3]
    assert local.tolist() == [[0, 1], [-1, 0]]


def test_rows_are_taken_and_added_by_their_numbers() -> None:
    table, rows = np.arange(60, dtype=np.float32).reshape(20, 3), np.array([4, 0, 4, 19] * 10)
    taken = np.empty((40, 3), np.float32)
    take_rows(table, rows, taken)
    np.testing.assert_array_equal(taken, table[rows])
    total, expected = np.zeros_like(table), np.zeros_like(table)
    add_rows(taken, rows, total)
    np.add.at(expected, rows, taken)
    np.testing.assert_allclose(total, expected)


def test_parts_of_rows_are_added_to_one_table_each() -> None:
    rows, places = np.arange(18, dtype=np.float32).reshape(3, 6), np.array([1, 0, 1])
    results = np.zeros((2, 4, 3), np.float32)
    add_parts(rows, places, results)
    assert results[0].tolist() == [[6, 7, 8], [12, 14, 16], [0, 0, 0], [0, 0, 0]]
    assert results[1].tolist() == [[9, 10, 11], [18, 20, 22], [0, 0, 0], [0, 0, 0]]


def test_vectors_are_rows_and_the_start_vector_time_major() -> None:
    rows, start = np.array([[1, 2, 9], [3, 4, 9]], np.float32), np.array([5, 6], np.float32)
    result = np.empty((2, 3, 2), np.float32)
    codes = np.array([[1, -1], [0, 1], [-1, -1]])
    gather_vectors(rows, start, codes, np.empty((0, 0, 2), np.int16), 0, 1.0, result)
    assert result.tolist() == [[[3, 4], [1, 2], [5, 6]], [[5, 6], [3, 4], [5, 6]]]


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.booleans(), st.integers(0, 99))
def test_a_masked_gather_and_its_gradient(batch: int, time: int, masked: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    codes, bits = random.integers(-1, 4, (batch, time)), random.integers(-9, 9, (batch, time, 5)).astype(np.int16)
    rows, start = (random.normal(size=size).astype(np.float32) for size in ((4, 6), 5))
    factor, bits = (np.where(bits < 2, 1.5, 0), bits) if masked else (np.ones(bits.shape), bits[:0, :0])
    result = np.empty((time, batch, 5), np.float32)
    gather_vectors(rows, start, codes, bits, 2, 1.5, result)
    both = np.vstack([rows[:, :5], start])
    np.testing.assert_allclose(result, (both[codes] * factor).swapaxes(0, 1), rtol=1e-6)

    gradient, total = random.normal(size=result.shape).astype(np.float32), np.zeros((5, 5))
    rows_gradient, start_gradient = np.zeros((4, 6), np.float32), np.zeros(5, np.float32)
    scatter_vectors(gradient, codes, bits, 2, 1.5, rows_gradient, start_gradient)
    np.add.at(total, codes, gradient.swapaxes(0, 1) * factor)  # -1 is the last row
    np.testing.assert_allclose(rows_gradient[:, :5], total[:4], atol=1e-4)
    np.testing.assert_allclose(start_gradient, total[4], atol=1e-4)
    assert not rows_gradient[:, 5].any()
