"""A data set as a stream in the order of its times, and the models that predict it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partialmethod
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.sets import DataSet
from pathdex import metrics
from pathdex.data.events import Event
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.splits import Split
from pathdex.data.vocabulary import UNKNOWN
from pathdex.index.scores import ScoreTable
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.retrieval.filters import Filters
from pathdex.training.stream import learner
from pathdex.training.stream.options import StreamOptions

TENTHS = 10
HALF = 5
FIRST = 2
"""The first tenth that is predicted: before it there is little to learn from."""

ALL_ITEMS = "all items"
"""The figure of scoring all items by the reranker."""
ABLATIONS = {
    "min-score": (ScoreTable, "update", partialmethod(ScoreTable.update, min_score=False)),
    "incremental-m-step": (learner, "reassign_items", lambda *arguments, **options: 0),
}
"""What can be left out: the paper's min_score of paths that enter a full list, and the move of items that were seen."""


@dataclass
class Stream:
    """Events in the order of their times; every `every`-th of them is predicted."""

    data: Interactions
    users: NDArray[np.int64]
    items: NDArray[np.int64]
    every: int

    @classmethod
    def of(cls, data: Interactions, every: int) -> Stream:
        assert data.times is not None
        owner = np.repeat(np.arange(data.num_users), data.sequences.lengths)
        order = np.argsort(data.times, kind="stable")
        return cls(data, owner[order], data.sequences.values[order].astype(np.int64), every)

    def __post_init__(self) -> None:
        order = np.argsort(self.users, kind="stable")
        starts = np.searchsorted(self.users[order], np.arange(self.data.num_users))
        self._by_user, self._start = self.items[order], starts[self.users]
        self.seen = np.empty(len(order), np.int64)
        """How many events of the same user are before each."""
        self.seen[order] = np.arange(len(order)) - starts[self.users[order]]

    def __len__(self) -> int:
        return len(self.items)

    @property
    def edges(self) -> list[int]:
        """Where the tenths begin, and the end."""
        return [len(self) * tenth // TENTHS for tenth in range(TENTHS + 1)]

    def history(self, place: int) -> NDArray[np.int64]:
        """The items that the user of an event had before it."""
        first = self._start[place]
        return self._by_user[first : first + self.seen[place]]

    def predicted(self, first: int, end: int) -> NDArray[np.int64]:
        """The events of a part that are predicted."""
        return np.arange(first + -first % self.every, end, self.every)

    def so_far(self, end: int) -> Interactions:
        """The first events by user, with the items that have occurred as the catalogue."""
        used = np.unique(self.items[:end])
        code_of = np.full(self.data.num_items, UNKNOWN)
        code_of[used] = np.arange(len(used))
        order = np.argsort(self.users[:end], kind="stable")
        rows, lengths = np.unique(self.users[:end], return_counts=True)
        values = code_of[self.items[:end][order]].astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Interactions(Ragged(values, offsets), self.data.users.take(rows), self.data.items.take(used))

    def events(self) -> list[Event]:
        return [Event(int(user), item) for user, item in zip(self.users, self.data.items.ids(self.items), strict=True)]


class Predictions:
    """Which of the predicted events a model hit, with the index and with all items scored by the reranker."""

    def __init__(self, stream: Stream, n: int) -> None:
        self.stream, self.n = stream, n
        self.places: list[int] = []
        self.hits: list[bool] = []
        self.exhaustive: list[bool] = []

    def add(self, model: DeepRetrieval, places: NDArray[np.int64]) -> None:
        """Predict events with a model; an item that it does not know counts as missed."""
        if not len(places):
            return
        code_of = model.items.codes(self.stream.data.items.ids(np.arange(self.stream.data.num_items)))
        known = [code_of[self.stream.history(place)] for place in places]
        rows = Ragged.from_rows([one[one != UNKNOWN].astype(np.int32) for one in known])
        targets = code_of[self.stream.items[places]]
        n = min(self.n, len(model.items))
        found = model.rank(rows, n, Filters(exclude=rows), candidates=min(10 * n, len(model.items))).items
        self.hits += ((found == targets[:, None]).any(axis=1) & (targets != UNKNOWN)).tolist()
        scores = _scores(model, rows)
        own = scores[np.arange(len(targets)), np.maximum(targets, 0)]
        better = (scores > own[:, None]).sum(axis=1)
        self.exhaustive += ((better < n) & (targets != UNKNOWN) & np.isfinite(own)).tolist()
        self.places += places.tolist()


def run_streaming(
    stream: Stream, n: int, options: StreamOptions, parameters: dict[str, Any], publish: int
) -> tuple[Predictions, dict[str, float]]:
    """One pass from nothing. The model that predicts is published every `publish` events."""
    model = DeepRetrieval(**parameters)
    online, predictions = model.begin_stream(options), Predictions(stream, n)
    events, spent = stream.events(), defaultdict[str, float](float)
    start, waiting = stream.edges[FIRST], 0
    for first in range(0, len(events), options.batch_events):
        end = min(first + options.batch_events, len(events))
        with timed(spent, "learn"):
            online.state.apply(events[first:end])
        if first // publish != end // publish or not model.is_fitted or end == len(events):
            if end > start:
                with timed(spent, "predict"):
                    predictions.add(model, stream.predicted(max(waiting, start), end))
            waiting = end
            with timed(spent, "publish"):
                model.take_snapshot(online)
    return predictions, dict(spent)


def run_retrained(
    stream: Stream, n: int, parameters: dict[str, Any], arms: list[str]
) -> dict[str, tuple[Predictions, dict[str, float]]]:
    """Models that are trained from scratch at each tenth; the one at half is the frozen one from there."""
    found = {arm: (Predictions(stream, n), defaultdict[str, float](float)) for arm in arms}
    frozen: DeepRetrieval | None = None
    for tenth in range(FIRST if "retrained" in arms else HALF, TENTHS):
        begin, end = stream.edges[tenth : tenth + 2]
        newest = frozen
        if frozen is None or "retrained" in arms:
            started = time.process_time()
            newest = DeepRetrieval(**parameters).fit(stream.so_far(begin), callbacks=[])
            for arm in ("retrained", "frozen") if tenth == HALF else ("retrained",):
                if arm in arms:
                    found[arm][1]["learn"] += time.process_time() - started
            if tenth == HALF:
                frozen = newest
        for arm, model in {"retrained": newest, "frozen": frozen}.items():
            if arm in arms and model is not None:
                with timed(found[arm][1], "predict"):
                    found[arm][0].add(model, stream.predicted(begin, end))
    return {arm: (predictions, dict(spent)) for arm, (predictions, spent) in found.items()}


def run_one_pass(data_set: DataSet, seed: int, options: StreamOptions, parameters: dict[str, Any]) -> dict[str, Any]:
    """One pass over the training users of the usual split, then its test users."""
    split = data_set.split(seed)
    model = DeepRetrieval(seed=seed, **parameters)
    online, events, spent = (
        model.begin_stream(options),
        Stream.of(split.train, 1).events(),
        defaultdict[str, float](float),
    )
    with timed(spent, "learn"):
        for first in range(0, len(events), options.batch_events):
            online.state.apply(events[first : first + options.batch_events])
    model.take_snapshot(online)
    return {**held_out_figures(model, data_set, split), "cpu_seconds": dict(spent)}


def held_out_figures(model: DeepRetrieval, data_set: DataSet, split: Split) -> dict[str, Any]:
    """F of the test users with seen items removed, by number of candidates, and with all items scored.

    A stream knows only the items that it has met, and numbers them in another order.
    """
    ids = split.train.items.ids(np.arange(split.train.num_items))
    code_of, item_of = model.items.codes(ids), split.train.items.codes(model.items.ids(np.arange(len(model.items))))
    known = [code_of[history] for history in split.test.history]
    rows = Ragged.from_rows([one[one != UNKNOWN].astype(np.int32) for one in known])

    def f_measure(found: NDArray[np.int64]) -> float:
        hits = metrics.hit_matrix(np.where(found == UNKNOWN, UNKNOWN, item_of[found]), split.test.truth)
        return float(metrics.f_measure(metrics.precision(hits), metrics.recall(hits, split.test.truth)).mean())

    found = {
        str(count): f_measure(model.rank(rows, data_set.n, Filters(exclude=rows), candidates=count).items)
        for count in data_set.candidates
    }
    scores = _scores(model, rows)
    best = np.argsort(-scores, axis=1, kind="stable")[:, : data_set.n]
    return {**found, ALL_ITEMS: f_measure(best)}


def _scores(model: DeepRetrieval, rows: Ragged) -> NDArray[np.float32]:
    """The reranker's scores of all items, (query, item), seen ones at -inf."""
    scores: NDArray[np.float32] = model.user_vectors(rows) @ model.item_vectors.T + model.item_bias
    for row, history in zip(scores, rows, strict=True):
        row[history] = -np.inf
    return scores


@contextmanager
def without(names: list[str]) -> Iterator[None]:
    """Leave out some of the `ABLATIONS`."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch.object(*ABLATIONS[name]))
        yield


@contextmanager
def timed(spent: dict[str, float], name: str) -> Iterator[None]:
    """Add the processor seconds of a block to an entry."""
    started = time.process_time()
    yield
    spent[name] += time.process_time() - started
