"""Draws from rows of probabilities."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pathdex.kernels.draws import draw_row


def counts_of(shares: np.ndarray, scale: float, point: float) -> np.ndarray:
    """How often each column of all rows is drawn, with one line through the rows."""
    place, found = np.array([0, point], np.float32), np.zeros(shares.shape)
    columns, counts = np.empty(shares.size, np.int64), np.empty(shares.size, np.float32)
    for row in range(len(shares)):
        made = draw_row(shares, row, np.float32(scale), place, columns, counts, 0)
        found[row, columns[:made]] = counts[:made]
    return found


def test_points_at_distance_one_draw_the_columns_they_fall_into() -> None:
    shares = np.zeros((1, 32), np.float32)
    shares[0, [0, 3, 20]] = [0.5, 0.25, 0.25]
    found = counts_of(shares, 10, 0.25)  # at 0.25, 1.25, ..., 9.25; the columns end at 5, 7.5 and 10
    assert found[0, [0, 3, 20]].tolist() == [5, 3, 2]
    assert found.sum() == 10


@given(st.integers(1, 3), st.integers(1, 3), st.floats(0.5, 40), st.integers(0, 99))
def test_counts_are_the_shares_on_average_and_differ_by_less_than_one(
    rows: int, blocks: int, scale: float, seed: int
) -> None:
    shares = np.random.default_rng(seed).dirichlet(np.full(16 * blocks, 0.3), rows).astype(np.float32)
    every = [counts_of(shares, scale, (number + 0.5) / 50) for number in range(50)]
    assert max(np.abs(one - scale * shares).max() for one in every) < 1.001
    np.testing.assert_allclose(np.mean(every, axis=0), scale * shares, atol=0.021)
