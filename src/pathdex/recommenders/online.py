"""Learning online: a fitted model takes single events, new items and removals, and answers with them at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.data.events import Event, EventParser, Malformed
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.errors import DataError, Problem, QueryError
from pathdex.index.postings import Postings
from pathdex.kernels.neighbours import Neighbours
from pathdex.recommenders.base import History, Recommender
from pathdex.recommenders.model_state import ModelState, with_defaults

if TYPE_CHECKING:
    from pathdex.config import Config
    from pathdex.training.stream.options import StreamOptions
    from pathdex.training.stream.state import StreamState


NEW = -1
"""The old code of an item that the model did not have."""


class LearnsOnline(Recommender):
    """Goes on learning after it was fitted, or starts from nothing. Answers change with the call that returns.

    Histories are kept by user across calls of `partial_fit`, but not in a bundle: a model that is loaded knows none.
    """

    lacking: ClassVar[str] = "cannot learn online"
    _online: OnlineLearning | None = None

    @abstractmethod
    def begin_stream(self, options: StreamOptions | None = None, histories: Path | None = None) -> OnlineLearning:
        """What the model has learned, to continue from. The model does not change with it until `take_snapshot`.

        `histories` is a file for the histories of users that outgrow memory.
        """

    @abstractmethod
    def take_snapshot(self, online: OnlineLearning) -> None:
        """Answer with what was learned so far."""

    @contextmanager
    def _learning(self) -> Iterator[OnlineLearning]:
        if self._online is None:
            self._online = self.begin_stream()
        try:
            yield self._online
        finally:
            if len(self._online.state.catalogue):
                self.take_snapshot(self._online)

    def partial_fit(self, events: Iterable[Event | Sequence[Any] | Mapping[str, Any]]) -> Self:
        """Learn from events in order, each once; returns the estimator.

        An event is (user, item), (user, item, time), (user, item, time, weight) or a mapping with these keys. New items
        join the catalogue. A malformed event raises `DataError`; the batches before it have been learned from.
        """
        with self._learning() as online:
            online.learn(events)
        return self

    def observe(self, history: History, item: Id) -> Self:
        """Learn that an item followed a history; returns the estimator. Unknown items of the history are ignored."""
        if isinstance(history, str | int):
            rule = "must be a list of items, not one item"
            raise QueryError(rule, argument="history", value=history, remedy=f"pass [{history!r}]")
        [item] = _checked_ids([item])
        with self._learning() as online:
            online.state.observe(history, item)
        return self

    def add_items(self, ids: Iterable[Id], *, like: Mapping[Id, Sequence[Id]] | None = None) -> Self:
        """Add items before their first event; returns the estimator.

        `like` names known items that a new one is similar to: it starts with their mean vector, on the paths of the
        last of them. Others start at random. Known items stay as they are.
        """
        with self._learning() as online:
            online.add_items(ids, like)
        return self

    def remove_items(self, ids: Iterable[Id]) -> Self:
        """Remove items; returns the estimator. An unknown id raises `QueryError`, and nothing is removed."""
        with self._learning() as online:
            online.remove_items(ids)
        return self

    def reassign(self) -> Self:
        """Run a full M-step over all items (Algorithm 2); returns the estimator."""
        with self._learning() as online:
            online.state.learner.full_m_step()
        return self


class OnlineLearning:
    """The state of a model that goes on learning, and what it answers with after each change."""

    def __init__(self, state: StreamState, neighbours: Neighbours | None = None) -> None:
        """`neighbours` are those of the model that the stream continues, by slot."""
        self.state, self.neighbours = state, neighbours

    @classmethod
    def start(
        cls, config: Config, options: StreamOptions | None = None, *, seed: int = 0, histories: Path | None = None
    ) -> OnlineLearning:
        """From nothing."""
        from pathdex.training.stream.state import StreamState

        return cls(StreamState(config, options, seed=seed, histories=histories))

    @classmethod
    def resume(
        cls,
        model: ModelState,
        items: Vocabulary,
        options: StreamOptions | None = None,
        *,
        seed: int = 0,
        histories: Path | None = None,
    ) -> OnlineLearning:
        """From a trained model."""
        from pathdex.training.stream.state import StreamState

        state = StreamState(model.config, options, seed=seed, histories=histories)
        state.adopt(items, np.asarray(model.rows), np.asarray(model.paths), np.asarray(model.counts), model.weights)
        return cls(state, model.neighbours)

    def learn(self, events: Iterable[Event | Sequence[Any] | Mapping[str, Any]]) -> None:
        """Learn from events in order, in batches of `batch_events`. A malformed event raises `DataError`.

        Events before the first malformed batch have been learned from.
        """
        parser = EventParser()
        remaining = (_as_event(number, one, parser) for number, one in enumerate(events))
        while batch := list(islice(remaining, self.state.options.batch_events)):
            self.state.apply(batch)

    def add_items(self, items: Iterable[Id], like: Mapping[Id, Sequence[Id]] | None = None) -> None:
        """Add items before their first event; `like` names similar known items for each."""
        items, like = _checked_ids(items), like or {}
        if unlisted := [one for one in like if one not in items]:
            rule = f"names {unlisted[0]!r}, which is not among the items"
            raise QueryError(rule, argument="like", value=dict(like), remedy="name similar items of new ones only")
        unknown = [one for near in like.values() for one in near if one not in self.state.catalogue]
        if unknown:
            rule = f"must name known items; {unknown[0]!r} is unknown"
            raise QueryError(rule, argument="like", value=unknown, remedy="add it first, or leave it out")
        for item in items:
            self.state.add_item(item, [self.state.catalogue.slot(one) for one in like.get(item, ())])

    def remove_items(self, items: Iterable[Id]) -> None:
        """Remove items; unknown ones raise `QueryError`, and then nothing is removed."""
        items = list(items)
        for item in items:
            if self.state.catalogue.slot(item) == UNKNOWN:
                raise QueryError("is not in the catalogue", argument="item", value=item, remedy="pass known ids")
        if len({self.state.catalogue.slot(item) for item in items}) == len(self.state.catalogue):
            raise QueryError("would leave no item", argument="ids", value=items, remedy="keep at least one")
        self.state.remove_items(items)

    def snapshot(self, records: list[dict[str, Any]]) -> tuple[ModelState, Vocabulary]:
        """The model at this moment, with its items. Free slots are left out."""
        learner = self.state.learner
        ids, slots = self.state.catalogue.vocabulary()
        config = with_defaults(learner.config)
        weights = dict(learner.network.state_dict())
        paths, counts = learner.paths[slots], learner.counts[slots]
        postings = Postings.from_paths(paths, learner.structure_nodes, config.depth)
        near = None
        if self.neighbours is not None:
            first = np.array([self.state.catalogue.token(slot) == slot for slot in slots.tolist()], np.bool_)
            near = carry_neighbours(self.neighbours, np.where(first, slots, NEW))
        state = ModelState(
            config,
            {name: value.detach().numpy().copy() for name, value in weights.items()},
            learner.rows[slots],
            paths,
            counts,
            postings,
            postings.log_shares(counts),
            records,
            near,
        )
        return state, ids


def carry_neighbours(neighbours: Neighbours, old_codes: NDArray[np.int64]) -> Neighbours:
    """The neighbours of items with other codes: item v had the code `old_codes[v]`, or is `NEW` and has none."""
    num_old = len(neighbours.offsets) - 1
    known = (old_codes != NEW) & (old_codes < num_old)
    code_of = np.full(num_old, NEW)
    code_of[old_codes[known]] = np.flatnonzero(known)
    owner = code_of[np.repeat(np.arange(num_old), np.diff(neighbours.offsets))]
    kept = (owner != NEW) & (code_of[neighbours.items] != NEW)
    lengths = np.bincount(owner[kept], minlength=len(old_codes))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    chosen = np.flatnonzero(kept)[np.argsort(owner[kept], kind="stable")]
    return Neighbours(offsets, code_of[neighbours.items[chosen]].astype(np.int32), neighbours.similarities[chosen])


def _checked_ids(items: Iterable[Id]) -> list[Id]:
    """New ids, by the rules of an event."""
    if isinstance(items, str):
        raise QueryError("must be a list of ids, not text", argument="ids", value=items, remedy=f"pass [{items!r}]")
    parser, checked = EventParser(), []
    for item in items:
        event = parser.parse({"user": "-", "item": item})
        if isinstance(event, Malformed):
            raise QueryError(event.reason, argument="item", value=item, remedy="pass a text or an integer")
        checked.append(event.item)
    return checked


def _as_event(number: int, one: Event | Sequence[Any] | Mapping[str, Any], parser: EventParser) -> Event:
    """An event from an event, a tuple (user, item, time, weight) or a mapping."""
    if not isinstance(one, Mapping):
        values = tuple(one) if isinstance(one, Sequence) and not isinstance(one, str) else ()
        if not 2 <= len(values) <= 4:
            rule = f"event {number}: {one!r} must be (user, item), with time and weight if known"
            raise DataError(Problem(rule, remedy="pass tuples or mappings"))
        one = dict(zip(("user", "item", "time", "weight"), values, strict=False))
    event = parser.parse(one)
    if isinstance(event, Malformed):
        raise DataError(Problem(f"event {number}: {event.reason}", remedy="fix it or leave it out"))
    return event
