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

from pathdex.data.attribute_features import feature_table
from pathdex.data.attributes import Attributes
from pathdex.data.event_values import BrokenRuleError
from pathdex.data.events import Event, EventParser, Malformed
from pathdex.data.item_changes import ItemAttributes, check_attributes, features
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.errors import DataError, Problem, QueryError
from pathdex.index.postings import NO_PATH, Postings
from pathdex.kernels.neighbours import Neighbours
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.model_state import ModelState, with_defaults
from pathdex.recommenders.query import History
from pathdex.recommenders.stream_neighbours import StreamNeighbours
from pathdex.retrieval.score_weights import ScoreWeights

if TYPE_CHECKING:
    from pathdex.config import Config
    from pathdex.training.stream.options import StreamOptions
    from pathdex.training.stream.state import StreamState


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
        self._online.use_table(self._catalogue_table)
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
        if isinstance(events, str | Mapping | Event) or not isinstance(events, Iterable):
            remedy = "pass a list of tuples (user, item, time) or mappings, also for a single event"
            raise DataError(Problem("must be a list of events", "events", events, remedy))
        with self._learning() as online:
            online.learn(events)
        return self

    def observe(self, history: History, item: Id) -> Self:
        """Learn that an item followed a history; returns the estimator. Unknown items of the history are ignored.

        A new item joins the catalogue; one that was removed does not.
        """
        if isinstance(history, str | int):
            rule = "must be a list of items, not one item"
            raise QueryError(rule, argument="history", value=history, remedy=f"pass [{history!r}]")
        [item] = _checked_ids([item])
        with self._learning() as online:
            online.state.observe(history, item)
        return self

    def add_items(
        self,
        ids: Iterable[Id],
        *,
        like: Mapping[Id, Sequence[Id]] | None = None,
        attributes: Mapping[Id, ItemAttributes] | None = None,
    ) -> Self:
        """Add items before their first event; returns the estimator.

        `like` names known items that a new one is similar to: it starts with their mean vector, on the paths of the
        last of them. `attributes` are columns of a new item, as in `{"x": {"genre": "drama|crime", "year": 1999}}`. It
        starts near the items that share most of its values, rare ones above all, according to the attached table and to
        what was added before. Without either, an item of the attached table starts by its row; others start at random.
        Known items stay as they are.
        """
        with self._learning() as online:
            online.add_items(ids, like, attributes)
        return self

    def remove_items(self, ids: Iterable[Id]) -> Self:
        """Remove items; returns the estimator. An unknown id raises `QueryError`, and nothing is removed.

        Later events of a removed item are ignored until `add_items` adds it again. A bundle does not remember this.
        """
        with self._learning() as online:
            online.remove_items(ids)
        return self

    def reassign(self) -> Self:
        """Run a full M-step over all items (Algorithm 2); returns the estimator."""
        with self._learning() as online:
            online.state.learner.full_m_step()
        return self


LEAST_COUNT = 10
"""What the published model takes as the count of a rarer item: p(v | c) of a new item would hide it behind others."""
NEW_SIMILARITY = 0.13
"""What the published model takes as the similarity of an item to any history before neighbours were looked for with it:
as if it were similar to nothing, it would come after all items that have neighbours."""


class OnlineLearning:
    """The state of a model that goes on learning, and what it answers with after each change."""

    def __init__(self, state: StreamState, neighbours: Neighbours | None = None) -> None:
        """`neighbours` are those of the model that the stream continues, by slot."""
        self.state, self.neighbours = state, StreamNeighbours(state, neighbours)
        self._table: Attributes | None = None

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
        if hasattr(events, "itertuples"):
            rule = "is a DataFrame, must be events: tuples (user, item, time, weight) or mappings"
            remedy = "pass df[['user', 'item', 'time']].itertuples(index=False, name=None)"
            raise DataError(Problem(rule, "events", type(events).__name__, remedy))
        parser = EventParser()
        remaining = (_as_event(number, one, parser) for number, one in enumerate(events))
        while batch := list(islice(remaining, self.state.options.batch_events)):
            self.state.apply(batch)

    def use_table(self, table: Attributes | None) -> None:
        """Know the attributes of items from a catalogue table."""
        if table is not None and table is not self._table:
            self._table = table
            self.state.use_table(feature_table(table))

    def add_items(
        self,
        items: Iterable[Id],
        like: Mapping[Id, Sequence[Id]] | None = None,
        attributes: Mapping[Id, ItemAttributes] | None = None,
    ) -> None:
        """Add items before their first event; `like` names similar known items for each, `attributes` its columns."""
        items, like = _checked_ids(items), like or {}
        if unlisted := [one for one in like if one not in items]:
            rule = f"names {unlisted[0]!r}, which is not among the items"
            raise QueryError(rule, argument="like", value=dict(like), remedy="name similar items of new ones only")
        values = _checked_attributes(attributes, items)
        unknown = [one for near in like.values() for one in near if one not in self.state.catalogue]
        if unknown:
            rule = f"must name known items; {unknown[0]!r} is unknown"
            raise QueryError(rule, argument="like", value=unknown, remedy="add it first, or leave it out")
        for item in items:
            self.state.changes.unblock(item)
            near = [self.state.catalogue.slot(one) for one in like.get(item, ())]
            self.state.add_item(item, near, values.get(item, ()), named=bool(near))

    def remove_items(self, items: Iterable[Id]) -> None:
        """Remove items; unknown ones raise `QueryError`, and then nothing is removed."""
        items = _listed(items)
        for item in items:
            if self.state.catalogue.slot(item) == UNKNOWN:
                raise QueryError("is not in the catalogue", argument="item", value=item, remedy="pass known ids")
        if len({self.state.catalogue.slot(item) for item in items}) == len(self.state.catalogue):
            raise QueryError("would leave no item", argument="ids", value=items, remedy="keep at least one")
        self.state.remove_items(items)
        for item in items:
            self.state.changes.block(item)

    def snapshot(self, records: list[dict[str, Any]]) -> tuple[ModelState, Vocabulary]:
        """The model at this moment, with its items. Free slots are left out."""
        if self.neighbours.is_due:
            self.neighbours.begin()
        self.neighbours.take(wait=True)
        ids, slots = self.state.catalogue.vocabulary()
        return self._model_state(slots, records), ids

    def snapshot_by_slot(self, records: list[dict[str, Any]], size: int = 0) -> tuple[ModelState, Vocabulary]:
        """The model at this moment, whose codes are slots: free slots have no id. It has at least `size` codes."""
        slots = np.arange(max(self.state.catalogue.num_slots, size))
        return self._model_state(slots, records), self.state.catalogue.vocabulary_by_slot(len(slots))

    def _model_state(self, slots: NDArray[np.int64], records: list[dict[str, Any]]) -> ModelState:
        learner, config = self.state.learner, self.config
        rows = np.zeros((len(slots), learner.rows.shape[1]), np.float32)
        paths = np.full((len(slots), learner.paths.shape[1]), NO_PATH)
        counts = np.zeros(len(slots), np.int64)
        used = np.flatnonzero(learner.used[slots[slots < learner.num_slots]])
        held = slots[used]
        rows[used], paths[used], counts[used] = (
            self.published_rows(held),
            learner.paths[held],
            self.published_counts(held),
        )
        postings = Postings.from_paths(paths, learner.structure_nodes, config.depth)
        shares, near = postings.log_shares(counts), self.neighbours.lists(slots)
        return ModelState(config, self.dense_weights(), rows, paths, counts, postings, shares, records, near)

    @property
    def config(self) -> Config:
        """The configuration of the model, with all weights of its final score."""
        return with_defaults(self.state.learner.config)

    def published_counts(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts of the items in these slots, at least `LEAST_COUNT`."""
        raised: NDArray[np.int64] = np.maximum(self.state.learner.counts[slots], LEAST_COUNT)
        return raised

    def published_rows(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """The rows of the items in these slots; the bias of `raised` ones makes up for the neighbours they lack."""
        rows: NDArray[np.float32] = self.state.learner.rows[slots]
        weights = ScoreWeights.from_config(self.config)
        rows[self.raised(slots), -1] += weights.neighbour * np.log1p(NEW_SIMILARITY / weights.smoothing)
        return rows

    def raised(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the items in these slots are rare, and newer than the neighbours of others."""
        return self.neighbours.missing(slots) & (self.state.learner.counts[slots] < LEAST_COUNT)

    def dense_weights(self) -> dict[str, NDArray[Any]]:
        """A copy of the network's weights without the item table."""
        weights = self.state.learner.network.state_dict()
        return {name: value.detach().numpy().copy() for name, value in weights.items()}


def _listed(items: Iterable[Id]) -> list[Id]:
    """Ids as a list; one id alone is an error."""
    if isinstance(items, str):
        raise QueryError("must be a list of ids, not text", argument="ids", value=items, remedy=f"pass [{items!r}]")
    if not isinstance(items, Iterable):
        raise QueryError("must be a list of ids", argument="ids", value=items, remedy=f"pass [{items!r}]")
    return list(items)


def _checked_ids(items: Iterable[Id]) -> list[Id]:
    """New ids, by the rules of an event."""
    parser, checked = EventParser(), []
    for item in _listed(items):
        event = parser.parse({"user": "-", "item": item})
        if isinstance(event, Malformed):
            raise QueryError(event.reason, argument="item", value=item, remedy="pass a text or an integer")
        checked.append(event.item)
    return checked


def _checked_attributes(
    attributes: Mapping[Id, ItemAttributes] | None, items: Sequence[Id]
) -> dict[Id, tuple[str, ...]]:
    """The features of new items."""
    if unlisted := [one for one in attributes or {} if one not in items]:
        rule, remedy = f"names {unlisted[0]!r}, which is not among the items", "describe new items only"
        raise QueryError(rule, argument="attributes", value=unlisted, remedy=remedy)
    checked = {}
    for item, given in (attributes or {}).items():
        try:
            checked[item] = features(check_attributes(given))
        except BrokenRuleError as error:
            remedy = "map columns to values, such as {'genre': 'drama|crime'}"
            raise QueryError(str(error), argument=f"attributes[{item!r}]", value=given, remedy=remedy) from None
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
