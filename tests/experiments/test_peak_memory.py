"""The peak grows with allocations and can be reset."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.experiments.peak_memory import peak_memory, reset_peak

SIZE = 64 * 2**20


def test_the_peak_includes_an_allocation() -> None:
    if not reset_peak():
        pytest.skip("this system cannot reset its peak")
    before = peak_memory()
    assert before is not None
    held = np.ones(SIZE, np.uint8)
    peak = peak_memory()
    assert peak is not None
    assert peak >= before + 0.9 * SIZE
    assert held[0] == 1
