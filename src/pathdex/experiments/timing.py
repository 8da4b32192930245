"""Inference time of several methods, measured in turns so that other load on the machine affects all alike."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.evaluation.protocol import seen_filter
from pathdex.progress import Progress
from pathdex.recommenders.base import Recommender

WARM_CALLS = 3
"""Warm-up queries of each method."""
BATCH = 256
TIMES = ("seconds_per_query", "seconds_per_query_in_batches")


def time_methods(
    methods: Sequence[tuple[Recommender, Mapping[str, Any]]],
    histories: Ragged,
    n: int,
    *,
    rounds: int,
    progress: Progress | None = None,
) -> list[dict[str, float]]:
    """Time every method with its query options on all histories, seen items removed, `rounds` times on one thread.

    A round answers the histories one by one, then 256 of them in one batch. Every other round reverses the order of the
    methods.
    """
    single = [histories.take(np.array([row])) for row in range(len(histories))]
    batch = histories.take(np.arange(BATCH) % len(histories))
    spent = np.empty((len(methods), rounds, 2))
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
                spent[place, number] = (between - started) / len(single), (ended - between) / len(batch)
                if progress is not None:
                    progress(number * len(methods) + done + 1, rounds * len(methods))
    return [timing_figures(rows) for rows in spent]


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


def timing_figures(seconds: NDArray[np.float64]) -> dict[str, float]:
    """The median, the lowest and the highest of the rounds (round, 2): one by one, and in batches."""
    found: dict[str, float] = {}
    for name, rounds in zip(TIMES, seconds.T, strict=True):
        values = (np.median(rounds), rounds.min(), rounds.max())
        found |= {f"{name}{end}": float(value) for end, value in zip(("", "_low", "_high"), values, strict=True)}
    return found
