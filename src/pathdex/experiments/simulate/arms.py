"""The arms of the experiment: what answers the requests of a bucket of users, and how it learns from the log."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pathdex.data.events import Event
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN
from pathdex.experiments.simulate.creators import Integers
from pathdex.experiments.simulate.options import SimulationOptions
from pathdex.experiments.simulate.platform import Platform
from pathdex.experiments.simulate.traffic import NOTHING, RANDOM_ARM, Requests, best_of
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.retrieval.filters import Filters


@dataclass(frozen=True)
class Build:
    """A model that an arm made, or went on learning with."""

    began: float
    """Simulated seconds."""
    events: int
    items: int
    seconds: float
    """Measured, not simulated: training and index."""
    index_seconds: float
    """Measured: the part that makes the index from a trained network. Scores and M-steps, or the HNSW graph."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Arm(ABC):
    """Answers requests. If it learns, `learn` is called in every tick before `pages`."""

    learns = True
    """Whether it reads the log."""

    def __init__(self) -> None:
        self.builds: list[Build] = []

    @abstractmethod
    def start(self, events: Sequence[Event], now: float) -> None:
        """Learn from the events of the warm-up."""

    def learn(self, events: Sequence[Event], now: float) -> None:
        """Take note of all events since the last call."""
        raise NotImplementedError(f"{type(self).__name__} does not learn")

    @abstractmethod
    def pages(self, requests: Requests, n: int) -> Integers:
        """(request, n) videos that the user was not shown, best first; `NOTHING` where there are no more."""


class OracleArm(Arm):
    """Knows the interests, so nothing beats it except by luck."""

    learns = False

    def __init__(self, platform: Platform) -> None:
        super().__init__()
        self.platform = platform

    def start(self, events: Sequence[Event], now: float) -> None:
        """It knows already."""

    def pages(self, requests: Requests, n: int) -> Integers:
        count = self.platform.videos.count(requests.now)
        everything = np.broadcast_to(np.arange(count), (len(requests.users), count))
        return best_of(self.platform.appeal(requests.users, everything, requests.now), requests, n)


class RandomArm(Arm):
    """Any video."""

    learns = False

    def __init__(self, platform: Platform, options: SimulationOptions) -> None:
        super().__init__()
        self.platform, self.options = platform, options

    def start(self, events: Sequence[Event], now: float) -> None:
        """There is nothing to learn."""

    def pages(self, requests: Requests, n: int) -> Integers:
        generator = np.random.default_rng([self.options.seed, RANDOM_ARM, int(requests.now)])
        count = self.platform.videos.count(requests.now)
        return best_of(generator.random((len(requests.users), count)), requests, n)


class FrozenArm(Arm):
    """The first model, for ever."""

    learns = False

    def __init__(self, first: FirstModel) -> None:
        super().__init__()
        self.first = first

    def start(self, events: Sequence[Event], now: float) -> None:
        self.model, build = self.first.get(events, now)
        self.builds.append(build)

    def pages(self, requests: Requests, n: int) -> Integers:
        return recommend(self.model, requests, n)


class StreamingArm(Arm):
    """Deep Retrieval that continues from the first model, learns from each event once, and answers with it at once."""

    def __init__(self, first: FirstModel, options: SimulationOptions) -> None:
        super().__init__()
        self.first, self.options = first, options

    def start(self, events: Sequence[Event], now: float) -> None:
        from pathdex.training.stream.options import StreamOptions

        self.model, build = self.first.get(events, now)
        self.builds.append(build)
        per_minute = max(1, len(events) // self.options.warmup_minutes)
        options = StreamOptions(m_step_events=M_STEP_MINUTES * per_minute, expire_after=60 * self.options.train_minutes)
        self.online = self.model.begin_stream(options)
        # With weight 0 they only restore the histories; the model has learned from them already.
        self.online.learn(event._replace(weight=0.0) for event in events)
        self._minute: list[float] = []
        self._events, self._since = 0, now

    def learn(self, events: Sequence[Event], now: float) -> None:
        began = time.perf_counter()
        self.online.learn(events)
        learned = time.perf_counter()
        self.model.take_snapshot(self.online)
        self._minute.append(time.perf_counter() - began)
        self._index = time.perf_counter() - learned
        self._events += len(events)
        if now - self._since >= 60:
            items = self.model.items.num_ids
            self.builds.append(Build(now, self._events, items, sum(self._minute), self._index))
            self._minute, self._events, self._since = [], 0, now

    def pages(self, requests: Requests, n: int) -> Integers:
        return recommend(self.model, requests, n)


M_STEP_MINUTES = 5
"""A streaming arm runs a full M-step about so often."""


class FirstModel:
    """Deep Retrieval trained on the warm-up, once for all arms that begin with it."""

    def __init__(self, make: Any) -> None:
        """`make(events, now)` trains a model and returns it with its `Build`."""
        self._make, self._made = make, None  # type: Any, tuple[DeepRetrieval, Build] | None

    def get(self, events: Sequence[Event], now: float) -> tuple[DeepRetrieval, Build]:
        """A copy of its own for each caller."""
        if self._made is None:
            self._made = self._make(events, now)
        model, build = self._made
        copy = DeepRetrieval.from_bundle(model.to_bundle())
        copy.options = model.options
        return copy, build


def recommend(model: Recommender, requests: Requests, n: int) -> Integers:
    """(request, n) a model's answers. Items that it does not know are left out of histories and filters."""
    histories = _codes(model, requests.histories)
    if model.history_length is not None:
        histories = histories.last(model.history_length)
    ranking = model.rank(histories, n, Filters(_codes(model, requests.shown)))
    found = ranking.items.ravel()
    pages = np.full(len(found), NOTHING)
    pages[found != UNKNOWN] = model.items.ids(found[found != UNKNOWN])
    return pages.reshape(ranking.items.shape)


def _codes(model: Recommender, rows: Sequence[Sequence[int]]) -> Ragged:
    lengths = np.array([len(row) for row in rows], np.int64)
    codes = model.items.codes([one for row in rows for one in row])
    known = codes != UNKNOWN
    owners = np.repeat(np.arange(len(rows)), lengths)[known]
    kept = np.bincount(owners, minlength=len(rows))
    return Ragged(codes[known].astype(np.int32), np.concatenate([[0], np.cumsum(kept)]))
