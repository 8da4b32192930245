"""Waiting after failures."""

from __future__ import annotations

import time

import pytest

from pathdex.data.event_sources.backoff import Backoff


def test_delays_double_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    backoff = Backoff()
    for _ in range(8):
        backoff.wait(60)
    assert waited == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5])
    backoff.wait(0.5)
    backoff.wait(-1)
    assert waited[8:] == [0.5, 0]
    backoff.reset()
    backoff.wait(60)
    assert waited[-1] == pytest.approx(0.1)
