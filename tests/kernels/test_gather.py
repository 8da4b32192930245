"""Numbering, gathering and scattering rows."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.gather import (
    LEVELS,
    RowNumbering,
    add_rows,
    gather_dropout,
    gather_dropout_backward,
    take_rows,
)

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


def test_without_dropout_rows_and_the_start_vector_are_copied() -> None:
    rows, start = np.array([[1, 2, 9], [3, 4, 9]], np.float32), np.array([5, 6], np.float32)
    result = np.empty((4, 2), np.float32)
    gather_dropout(rows, start, np.array([1, -1, 0, 1]), LEVELS, 0, result)
    assert result.tolist() == [[3, 4], [5, 6], [1, 2], [3, 4]]


def test_dropout_keeps_the_wanted_share_and_the_mean() -> None:
    rows, codes = np.ones((1, 33), np.float32), np.zeros(3000, np.int64)
    result = np.empty((3000, 33), np.float32)
    gather_dropout(rows, rows[0], codes, LEVELS // 4, 7, result)
    assert set(np.unique(result)) == {0.0, 4.0}
    np.testing.assert_allclose(result.mean(axis=0), 1.0, atol=0.15)
    np.testing.assert_allclose(result.mean(), 1.0, atol=0.02)
    again, other = np.empty_like(result), np.empty_like(result)
    gather_dropout(rows, rows[0], codes, LEVELS // 4, 7, again)
    gather_dropout(rows, rows[0], codes, LEVELS // 4, 8, other)
    assert (again == result).all()
    assert 0.5 < (other == result).mean() < 0.75  # independent: 1/16 + 9/16


def test_the_gradient_flows_where_dropout_kept_the_value() -> None:
    random = np.random.default_rng(0)
    codes, gradient = random.integers(-1, 4, 50), random.normal(size=(50, 5)).astype(np.float32)
    mask, rows, start = np.empty((50, 5), np.float32), np.zeros((4, 6), np.float32), np.zeros(5, np.float32)
    gather_dropout(np.ones((4, 6), np.float32), np.ones(5, np.float32), codes, LEVELS // 2, 3, mask)
    gather_dropout_backward(gradient, codes, LEVELS // 2, 3, rows, start)
    expected = np.zeros((5, 5))
    np.add.at(expected, codes, gradient * mask)  # -1 is the last row
    np.testing.assert_allclose(rows[:, :5], expected[:4], atol=1e-5)
    np.testing.assert_allclose(start, expected[4], atol=1e-5)
    assert not rows[:, 5].any()
