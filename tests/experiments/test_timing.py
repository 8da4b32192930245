"""The order and number of timed queries. No time is asserted."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch

from pathdex.data import Ragged
from pathdex.experiments.timing import BATCH, WARM_CALLS, one_thread, time_methods, timing_figures
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking
from tests.evaluation.fakes import Countdown


class Recording(Countdown):
    def __init__(self, name: str, notes: list[tuple[str, int, bool]]) -> None:
        super().__init__()
        self.label, self.notes = name, notes

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        self.notes.append((self.label, len(histories), filters.exclude is not None))
        return super().rank(histories, n, filters)


def test_methods_take_turns_and_the_order_alternates() -> None:
    notes: list[tuple[str, int, bool]] = []
    histories = Ragged.from_rows([[0], [1], [2], [3], [4]])
    progress: list[tuple[int, int | None]] = []
    timings = time_methods(
        [(Recording("a", notes), {}), (Recording("b", notes), {})],
        histories,
        2,
        rounds=3,
        progress=lambda *call: progress.append(call),
    )
    warm = 2 * (WARM_CALLS + 1)
    rounds = [notes[warm + 6 * place : warm + 6 * (place + 1)] for place in range(6)]
    assert [part[0][0] for part in rounds] == ["a", "b", "b", "a", "a", "b"]
    assert all([size for _, size, _ in part] == [1, 1, 1, 1, 1, BATCH] for part in rounds)
    assert len(notes) == warm + 36
    assert all(removed for _, _, removed in notes)
    assert len(timings) == 2
    assert progress[-1] == (6, 6)


def test_the_figures_of_a_timing() -> None:
    assert timing_figures(np.array([[3.0, 0.5], [1.0, 0.5], [2.0, 0.5]])) == {
        "seconds_per_query": 2.0,
        "seconds_per_query_low": 1.0,
        "seconds_per_query_high": 3.0,
        "seconds_per_query_in_batches": 0.5,
        "seconds_per_query_in_batches_low": 0.5,
        "seconds_per_query_in_batches_high": 0.5,
    }


def test_thread_counts_are_limited_and_restored() -> None:
    before = torch.get_num_threads(), numba.get_num_threads()
    with one_thread():
        assert (torch.get_num_threads(), numba.get_num_threads()) == (1, 1)
    assert (torch.get_num_threads(), numba.get_num_threads()) == before
