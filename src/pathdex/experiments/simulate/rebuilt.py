"""Arms that are built from a part of the log now and then: Deep Retrieval retrained, FFM + HNSW, popularity."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from pathdex.data.events import Event
from pathdex.data.interactions import Interactions
from pathdex.data.readers import read
from pathdex.experiments.simulate.arms import Arm, Build, FirstModel, recommend
from pathdex.experiments.simulate.creators import Integers
from pathdex.experiments.simulate.options import SimulationOptions
from pathdex.experiments.simulate.traffic import Requests
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.popularity import Popularity
from pathdex.training.callbacks import Callback

RECENT_SECONDS = 600.0
"""Popularity counts the events of so long."""
REFRESH_SECONDS = 60.0
"""Popularity is counted again so often, and served at once."""
FFM_PARAMETERS: Mapping[str, Any] = {
    "loss": "softmax",
    "negatives": "popularity",
    "dropout": 0.5,
    "epochs": 12,
    "learning_rate": 0.01,
    "recent": 10,
}
"""The best of seven settings on the warm-up of another seed (docs/simulate.md). The rest are defaults."""
Fit = Callable[[Interactions], tuple[Recommender, float]]
"""Returns a fitted model and the seconds that its index took."""


class RebuiltArm(Arm):
    """Fits a new model at regular times and serves it after a delay; until then, the one before answers."""

    def __init__(self, fit: Fit, *, every: float, delay: float, window: float, first: FirstModel | None = None) -> None:
        """`every`, `delay` and `window` are simulated seconds; a fit uses the events of the last `window`.

        `first` is the model to begin with, if other arms have the same.
        """
        super().__init__()
        self.first = first
        self.fit, self.every, self.delay, self.window = fit, every, delay, window
        self.log: list[Event] = []
        self._pending: tuple[float, Recommender] | None = None

    def start(self, events: Sequence[Event], now: float) -> None:
        self.log += recent(events, now - self.window)
        self._last = now
        if self.first is None:
            self.model = self._build(now)
        else:
            self.model, build = self.first.get(events, now)
            self.builds.append(build)

    def learn(self, events: Sequence[Event], now: float) -> None:
        self.log += events
        if now - self._last >= self.every:
            self._last, self.log = now, recent(self.log, now - self.window)
            if self.log:
                self._pending = now + self.delay, self._build(now)
        if self._pending is not None and now >= self._pending[0]:
            self.model, self._pending = self._pending[1], None

    def _build(self, now: float) -> Recommender:
        model, build = timed_fit(self.fit, self.log, now)
        self.builds.append(build)
        fitted: Recommender = model
        return fitted

    def pages(self, requests: Requests, n: int) -> Integers:
        return recommend(self.model, requests, n)


def timed_fit(fit: Fit, events: Sequence[Event], now: float) -> tuple[Any, Build]:
    """A model fitted on events, and what it took."""
    data = interactions(events)
    began = time.perf_counter()
    model, index_seconds = fit(data)
    return model, Build(now, len(events), data.num_items, time.perf_counter() - began, index_seconds)


def recent(events: Sequence[Event], since: float) -> list[Event]:
    return [event for event in events if event.time is not None and event.time >= since]


def interactions(events: Sequence[Event]) -> Interactions:
    """Events as training data."""
    users, items, times, _ = zip(*events, strict=True)
    frame = pl.DataFrame({"user_id": users, "item_id": items, "timestamp": np.array(times, np.float64)})
    return read(frame, user="user_id", item="item_id", time="timestamp")


def fit_deep_retrieval(options: SimulationOptions, threads: int | None) -> Fit:
    """Deep Retrieval with its defaults. Its index time is that of collecting scores and of the M-steps."""

    def fit(data: Interactions) -> tuple[DeepRetrieval, float]:
        model = DeepRetrieval(seed=options.seed, threads=threads).fit(data, callbacks=[])
        parts = ("m_step_seconds", "score_seconds")
        return model, sum(record.get(part, 0.0) for record in model.records for part in parts)

    return fit


def fit_ffm_hnsw(options: SimulationOptions, threads: int | None) -> Fit:
    """FFM + HNSW with `FFM_PARAMETERS`. Its index time is that of the graph."""

    def fit(data: Interactions) -> tuple[Recommender, float]:
        from pathdex.recommenders.ffm_hnsw import FFMHNSW

        clock = _EndOfTraining()
        model = FFMHNSW(seed=options.seed, threads=threads, **FFM_PARAMETERS).fit(data, callbacks=[clock])
        return model, time.perf_counter() - clock.ended

    return fit


def fit_popularity(data: Interactions) -> tuple[Recommender, float]:
    return Popularity().fit(data, callbacks=[]), 0.0


class _EndOfTraining(Callback):
    """Notes when the training of the vectors ended."""

    ended = 0.0

    def on_train_end(self) -> None:
        self.ended = time.perf_counter()
