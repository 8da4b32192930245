"""Rows are collected in order and filtered by column."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathdex.experiments.simulate.impressions import ImpressionRecorder


def part(times: list[float], finished: list[bool]) -> dict[str, Any]:
    whole = np.zeros(len(times), np.int64)
    columns = dict.fromkeys(("page", "user", "arm", "video", "position"), whole)
    flags = np.array(finished)
    shares = np.zeros(len(times))
    return {
        "time": np.array(times),
        **columns,
        "chosen": ~flags,
        "finished": flags,
        "seconds": shares,
        "expected": shares,
    }


def test_parts_become_columns() -> None:
    recorder = ImpressionRecorder()
    recorder.add(**part([1.0, 2.0], [True, False]))
    recorder.add(**part([3.0], [True]))
    rows = recorder.collect()
    assert rows.time.tolist() == [1.0, 2.0, 3.0]
    assert rows.where(rows.finished).time.tolist() == [1.0, 3.0]
    assert len(rows.where(rows.chosen)) == 1
