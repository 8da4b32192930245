"""The order of samples: a permutation, in windows where there are many."""

import numpy as np
import pytest

from pathdex.training import sample_order
from pathdex.training.sample_order import draw_few, draw_order, windowed_order

WINDOW, BLOCK = 64, 8


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LARGE": 100, "WINDOW": WINDOW, "SAMPLE_BLOCK": BLOCK}.items():
        monkeypatch.setattr(sample_order, name, value)


def test_few_samples_have_the_order_of_the_generator() -> None:
    expected = np.random.default_rng(3).permutation(100)
    np.testing.assert_array_equal(draw_order(100, np.random.default_rng(3)), expected)
    np.testing.assert_array_equal(draw_few(100, 7, np.random.default_rng(3)), expected[:7])


@pytest.mark.parametrize("count", [1, 8, 63, 64, 65, 101, 500, 1001])
def test_every_sample_is_visited_once(count: int) -> None:
    assert sorted(windowed_order(count, np.random.default_rng(0))) == list(range(count))


def test_a_window_reads_whole_blocks_from_everywhere() -> None:
    order = draw_order(6400, np.random.default_rng(0))
    windows = order.reshape(-1, WINDOW)
    assert all(len(np.unique(one // BLOCK)) == WINDOW // BLOCK for one in windows)
    assert np.ptp(windows, axis=1).min() > 6400 / 4
    assert (np.abs(np.diff(order)) > BLOCK).mean() > 0.5  # shuffled across the blocks of a window


def test_the_same_generator_gives_the_same_order_and_another_one_does_not() -> None:
    first, same, other = (draw_order(500, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert first.tolist() == same.tolist() != other.tolist()


def test_few_of_many_are_distinct() -> None:
    few = draw_few(10_000, 50, np.random.default_rng(0))
    assert len(np.unique(few)) == 50
    assert few.min() >= 0
    assert few.max() < 10_000
