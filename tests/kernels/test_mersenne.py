"""Masks from a Mersenne twister against numpy's."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.mersenne import fill_mask


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.lists(st.integers(0, 700), min_size=1, max_size=4))
def test_masks_come_from_pairs_of_words_of_mt19937(seed: int, skipped: int, sizes: list[int]) -> None:
    twister = np.random.MT19937()
    twister._legacy_seeding(seed)
    twister.random_raw(skipped)
    start = twister.state["state"]
    state, position = start["key"].astype(np.uint32), int(start["pos"])
    for size in sizes:
        mask = np.empty(size, np.float32)
        position = fill_mask(state, position, 0.7, np.float32(2.0), mask)
        high, low = twister.random_raw(2 * size).astype(np.uint64).reshape(-1, 2).T
        kept = ((high << np.uint64(32) | low) & np.uint64(2**53 - 1)) / 2**53 < 0.7
        np.testing.assert_array_equal(mask, np.where(kept, 2.0, 0.0))
