"""Inference time of several ways to answer, in turns, so that whatever else the machine does meets all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from pathdex.data.ragged import Ragged
from pathdex.evaluation.protocol import seen_filter
from pathdex.recommenders.base import Recommender

WARM_CALLS = 3
"""Queries that each method answers before the clock starts."""
BATCH = 256


@dataclass(frozen=True)
class Timing:
    """Seconds per query, over the rounds."""

    one: tuple[float, ...]
    """Asked one by one."""
    batch: tuple[float, ...]
    """Asked together."""

    def to_dict(self) -> dict[str, Any]:
        return {**_figures("seconds_per_query", self.one), **_figures("seconds_per_query_in_batches", self.batch)}


def time_methods(
    methods: Sequence[tuple[Recommender, Mapping[str, Any]]],
    histories: Ragged,
    n: int,
    *,
    rounds: int,
    advanced: Callable[[int, int], None] | None = None,
) -> list[Timing]:
    """Have every method answer all histories with seen items removed, `rounds` times in turns, on one thread.

    A round asks the histories one by one, then up to 256 of them together. The order of the methods is turned round
    in every other round.
    """
    single = [histories.take(np.array([row])) for row in range(len(histories))]
    together = histories.take(np.arange(BATCH) % len(histories))
    spent: list[list[tuple[float, float]]] = [[] for _ in methods]
    for model, _ in methods:
        model.set_threads(1)
    with one_thread():
        for model, options in methods:
            for query in single[:WARM_CALLS]:
                _ask(model, query, n, options)
            _ask(model, together, n, options)
        for number in range(rounds):
            places = range(len(methods)) if number % 2 == 0 else reversed(range(len(methods)))
            for done, place in enumerate(places):
                model, options = methods[place]
                started = time.perf_counter()
                for query in single:
                    _ask(model, query, n, options)
                between = time.perf_counter()
                _ask(model, together, n, options)
                ended = time.perf_counter()
                spent[place].append(((between - started) / len(single), (ended - between) / len(together)))
                if advanced is not None:
                    advanced(number * len(methods) + done + 1, rounds * len(methods))
    return [Timing(tuple(one for one, _ in rows), tuple(batch for _, batch in rows)) for rows in spent]


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch, compiled code and, where `threadpoolctl` is installed, BLAS and OpenMP use one thread inside."""
    import numba
    import torch

    before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    try:
        with _one_blas_thread():
            yield
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(1):
        yield


def _ask(model: Recommender, histories: Ragged, n: int, options: Mapping[str, Any]) -> None:
    model.rank(histories, n, seen_filter(histories, True), **options)


def _figures(name: str, seconds: Sequence[float]) -> dict[str, float]:
    return {name: float(np.median(seconds)), f"{name}_low": min(seconds), f"{name}_high": max(seconds)}
