"""Draws of LANES rows side by side equal those of `draw_row`, bit by bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from pathdex.kernels.draw_lanes import draw_lanes, first_bit
from pathdex.kernels.draws import draw_row
from pathdex.kernels.gemm import LANES
from pathdex.kernels.types import Floats, Ints


@njit
def draw(
    shares: Floats, rows: Ints, scales: Floats, lines: Floats, divisor: np.float32, counts: Floats, masks: Ints
) -> None:
    draw_lanes(shares, rows, scales, lines, divisor, counts, masks)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.floats(0.5, 60), st.sampled_from([0.05, 0.3, 3]), st.integers(0, 999))
def test_lanes_draw_what_rows_draw(blocks: int, scale: float, spread: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.full(LANES * blocks, spread), LANES).astype(np.float32)
    shares[:, random.integers(0, shares.shape[1], 3)] = 0
    rows, scales = random.permutation(LANES), (scale * random.random(LANES)).astype(np.float32)
    scales[5] = 0
    lines = np.stack([np.zeros(LANES, np.float32), random.random(LANES, np.float32)])
    places, divisor = lines.T.copy(), np.float32(3)
    counts, masks = np.full((shares.shape[1], LANES), 7, np.float32), np.empty(shares.shape[1], np.int64)
    for _ in range(2):  # The second time the lines continue.
        draw(shares, rows, scales, lines, divisor, counts, masks)
        for lane in range(LANES):
            columns, drawn = np.empty(shares.shape[1], np.int64), np.empty(shares.shape[1], np.float32)
            made = draw_row(shares, rows[lane], scales[lane], places[lane], columns, drawn, 0)
            expected = np.zeros(shares.shape[1], np.float32)
            expected[columns[:made]] = drawn[:made] / divisor
            np.testing.assert_array_equal(counts[:, lane], expected)
            np.testing.assert_array_equal(masks >> lane & 1, expected > 0)
            np.testing.assert_array_equal(lines[:, lane], places[lane])


@njit
def first(mask: int) -> int:
    return first_bit(mask)


def test_first_bit() -> None:
    assert [first(mask) for mask in (1, 2, 12, 1 << 15)] == [0, 1, 2, 15]
