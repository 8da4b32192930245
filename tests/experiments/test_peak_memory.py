"""The peak grows with what is held, and can be forgotten where the system lets it."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.experiments.peak_memory import forget_peak, peak_memory

SIZE = 64 * 2**20


def test_the_peak_holds_what_was_held() -> None:
    if not forget_peak():
        pytest.skip("this system does not forget its peak")
    before = peak_memory()
    assert before is not None
    held = np.ones(SIZE, np.uint8)
    peak = peak_memory()
    assert peak is not None
    assert peak >= before + 0.9 * SIZE
    assert held[0] == 1
