"""Inference time of several methods, measured in turns so that other load on the machine affects all alike."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from pathdex.data.ragged import Ragged
from pathdex.evaluation.protocol import seen_filter
from pathdex.progress import Progress
from pathdex.recommenders.base import Recommender

WARM_CALLS = 3
"""Warm-up queries of each method."""
BATCH = 256


@dataclass(frozen=True)
class Timing:
    """Seconds per query in each round."""

    single: tuple[float, ...]
    """Queries answered one by one."""
    batch: tuple[float, ...]
    """Queries answered in one batch."""

    def to_dict(self) -> dict[str, Any]:
        return {**_figures("seconds_per_query", self.single), **_figures("seconds_per_query_in_batches", self.batch)}


def time_methods(
    methods: Sequence[tuple[Recommender, Mapping[str, Any]]],
    histories: Ragged,
    n: int,
    *,
    rounds: int,
    progress: Progress | None = None,
) -> list[Timing]:
    """Time every method with its query options on all histories, seen items removed, `rounds` times on one thread.

    A round answers the histories one by one, then 256 of them in one batch. Every other round reverses the order of the
    methods.
    """
    single = [histories.take(np.array([row])) for row in range(len(histories))]
    batch = histories.take(np.arange(BATCH) % len(histories))
    spent: list[list[tuple[float, float]]] = [[] for _ in methods]
    for model, _ in methods:
        model.set_threads(1)
    with one_thread():
        for model, options in methods:
            for query in single[:WARM_CALLS]:
                _answer(model, query, n, options)
            _answer(model, batch, n, options)
        for number in range(rounds):
            places = range(len(methods)) if number % 2 == 0 else reversed(range(len(methods)))
            for done, place in enumerate(places):
                model, options = methods[place]
                started = time.perf_counter()
                for query in single:
                    _answer(model, query, n, options)
                between = time.perf_counter()
                _answer(model, batch, n, options)
                ended = time.perf_counter()
                spent[place].append(((between - started) / len(single), (ended - between) / len(batch)))
                if progress is not None:
                    progress(number * len(methods) + done + 1, rounds * len(methods))
    return [Timing(tuple(row[0] for row in rows), tuple(row[1] for row in rows)) for rows in spent]


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch, compiled code and, with `threadpoolctl` installed, BLAS and OpenMP to one thread."""
    import numba
    import torch

    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        threadpool_limits = nullcontext
    before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])


def _answer(model: Recommender, histories: Ragged, n: int, options: Mapping[str, Any]) -> None:
    model.rank(histories, n, seen_filter(histories, True), **options)


def _figures(name: str, seconds: Sequence[float]) -> dict[str, float]:
    return {name: float(np.median(seconds)), f"{name}_low": min(seconds), f"{name}_high": max(seconds)}
