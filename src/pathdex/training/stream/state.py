"""Everything a stream has become so far: a batch of events in, the next state out.

The state depends on the events and on how they are cut into batches, never on the clock, so reading the same events
again from a checkpoint gives the same bits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config, default_num_nodes
from pathdex.data.events import Event, Position
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.training.candidate_target import first_path_size
from pathdex.training.loop import TrainingState
from pathdex.training.stream.catalogue import StreamCatalogue
from pathdex.training.stream.growing import GrowingArray
from pathdex.training.stream.histories import UserHistories
from pathdex.training.stream.learner import Samples, StreamLearner
from pathdex.training.stream.options import StreamOptions

WAITING_ITEMS = 100_000
"""Items that wait for admission; the ones that waited longest are forgotten first."""
_HISTORIES, _CATALOGUE, _WAITING = "histories.", "catalogue.", "waiting."


@dataclass
class StreamCounters:
    """Counts since the stream began."""

    events: int = 0
    """Events read, whatever became of them."""
    learned: int = 0
    duplicates: int = 0
    """Events that repeat the user's last one."""
    late: int = 0
    """Events older than the user's last one."""
    waiting: int = 0
    """Events of items that are not admitted yet."""
    new_items: int = 0
    removed_items: int = 0


@dataclass(frozen=True)
class StreamStep:
    """What a batch of events led to."""

    losses: Mapping[str, float]
    touched: NDArray[np.int64]
    """The slots of items that may have changed paths, vectors or counts."""
    m_step: Mapping[str, Any] | None = None
    """Figures of a full M-step after the batch."""


class StreamState:
    """Learner, catalogue, histories and source position.

    An event is learned from once, with the items before it in the user's history. An event that repeats the user's last
    one (item and time) is dropped. One that is older than the user's last event is learned from, but not added to the
    history, which stays in the order of time. An event without a time counts as happening now: at the latest time so
    far. An event of weight 0 only extends the history.
    """

    def __init__(
        self,
        config: Config,
        options: StreamOptions | None = None,
        *,
        seed: int = 0,
        histories: Path | None = None,
    ) -> None:
        """`histories` is a file for histories that outgrow memory."""
        self.options = options or StreamOptions()
        self.config = resolve_for_stream(config, self.options)
        self.learner = StreamLearner(self.config, seed=seed)
        self.catalogue = StreamCatalogue()
        self.histories = UserHistories(self.config.history_length, histories)
        self.counters = StreamCounters()
        self.position: Position | None = None
        self.checkpoints = 0
        self.clock = 0.0
        """The latest event time so far."""
        self._last_seen = GrowingArray((), np.float64, -np.inf)
        self._waiting: OrderedDict[str, int] = OrderedDict()
        self._since_m_step = 0

    def apply(self, events: Sequence[Event], position: Position | None = None) -> StreamStep:
        """Learn from a batch of events; `position` is that of the source after it."""
        histories, targets = [], []
        for event in events:
            sample = self._take(event)
            if sample is not None:
                histories.append(sample[0])
                targets.append(sample[1])
        self.counters.events += len(events)
        self.counters.learned += len(targets)
        self.position = position
        losses: Mapping[str, float] = {}
        touched = np.unique(np.array(targets, np.int64))
        if targets:
            losses = self.learner.learn(Samples(histories, np.array(targets, np.int64)))
        self._since_m_step += len(targets)
        if self._since_m_step < self.options.m_step_events:
            return StreamStep(losses, touched)
        self._since_m_step = 0
        removed = self._forget_old()
        changed = np.union1d(np.flatnonzero(self.learner.used), removed)
        return StreamStep(losses, changed, self.learner.full_m_step())

    @property
    def events_to_m_step(self) -> int:
        """Events until the next full M-step."""
        return self.options.m_step_events - self._since_m_step

    def adopt(
        self,
        items: Vocabulary,
        rows: NDArray[np.float32],
        paths: NDArray[np.int64],
        counts: NDArray[np.int64],
        weights: Mapping[str, NDArray[Any]],
    ) -> None:
        """Continue from a trained model with these items, instead of from nothing."""
        self.catalogue = StreamCatalogue()
        for item in items.ids(range(len(items))):
            self.catalogue.add(item)
        self.learner.adopt(rows, paths, counts, weights)
        self._last_seen.load(np.full(len(items), self.clock))

    def observe(self, history: Sequence[Id], item: Id) -> None:
        """Learn from one item that followed a history, which belongs to no known user. Unknown items of it are left
        out; the item joins the catalogue."""
        slots = [slot for one in history if (slot := self.catalogue.slot(one)) != UNKNOWN]
        slot = self.add_item(item, slots)
        self.learner.learn(Samples([slots], np.array([slot])))
        self.counters.events += 1
        self.counters.learned += 1

    def _take(self, event: Event) -> tuple[list[int], int] | None:
        """Bring catalogue and histories up to date; returns the history before the event and the item's slot."""
        user = str(event.user)
        time = self.clock if event.time is None else event.time
        self.clock = max(self.clock, time)
        tokens, last = self.histories.tokens(user), self.histories.last_time(user)
        history = self.catalogue.slots_of(tokens)
        slot = self._slot(event.item, history)
        if slot == UNKNOWN:
            self.counters.waiting += 1
            return None
        token = self.catalogue.token(slot)
        if event.time is not None and tokens and time == last and tokens[-1] == token:
            self.counters.duplicates += 1
            return None
        self._last_seen.values[slot] = max(self._last_seen.values[slot], time)
        if time < last:
            self.counters.late += 1
        else:
            self.histories.append(user, token, time)
        return (history, slot) if event.weight > 0 else None

    def _slot(self, item: Id, history: Sequence[int]) -> int:
        """The slot of an item, which joins the catalogue once it was seen often enough."""
        slot = self.catalogue.slot(item)
        if slot != UNKNOWN:
            return slot
        if self.options.admit_after > 1:
            seen = self._waiting.pop(str(item), 0) + 1
            if seen < self.options.admit_after:
                self._waiting[str(item)] = seen
                if len(self._waiting) > WAITING_ITEMS:
                    self._waiting.popitem(last=False)
                return UNKNOWN
        return self.add_item(item, history)

    def add_item(self, item: Id, like: Sequence[int] = ()) -> int:
        """Add an item that starts near the items in the slots `like`; returns its slot."""
        if item in self.catalogue:
            return self.catalogue.slot(item)
        slot = self.catalogue.add(item)
        self.learner.add_item(slot, like)
        if slot >= len(self._last_seen.values):
            self._last_seen.resize(slot + 1)
        self._last_seen.values[slot] = self.clock
        self.counters.new_items += 1
        return slot

    def remove_items(self, items: Iterable[Id]) -> list[int]:
        """Remove items; returns the slots of those that were there."""
        removed = []
        for item in items:
            slot = self.catalogue.remove(item)
            if slot != UNKNOWN:
                self.learner.remove_item(slot)
                removed.append(slot)
        self.counters.removed_items += len(removed)
        return removed

    def _forget_old(self) -> list[int]:
        """Forget users and remove items that had no event for too long; returns the slots of the items.

        Called after so many events, not after a time, so that the state depends on the events alone.
        """
        if self.options.forget_users_after is not None:
            self.histories.forget_before(self.clock - self.options.forget_users_after)
        if self.options.expire_after is None:
            return []
        old = self.learner.used & (self._last_seen.values < self.clock - self.options.expire_after)
        ids = [self.catalogue.id(slot) for slot in np.flatnonzero(old).tolist()]
        return self.remove_items(one for one in ids if one is not None)

    def state_dict(self) -> TrainingState:
        """The state for a checkpoint; call `committed` once it is published."""
        learner = self.learner.state_dict()
        return TrainingState(
            {
                **learner.values,
                "counters": asdict(self.counters),
                "position": self.position,
                "checkpoint": self.checkpoints + 1,
                "clock": self.clock,
                "since_m_step": self._since_m_step,
            },
            {
                **learner.arrays,
                "last_seen": self._last_seen.values,
                **{f"{_CATALOGUE}{name}": one for name, one in self.catalogue.state_dict().items()},
                **{f"{_WAITING}{name}": one for name, one in _packed(self._waiting).items()},
                **{f"{_HISTORIES}{name}": one for name, one in self.histories.journal().items()},
            },
        )

    def committed(self) -> None:
        """The checkpoint of the last `state_dict` is on disk."""
        self.checkpoints += 1
        self.histories.commit(self.checkpoints)

    def load_state_dict(self, state: TrainingState) -> None:
        """Return to a checkpoint."""
        values = state.values
        self.learner.load_state_dict(state)
        self.catalogue = StreamCatalogue.from_state_dict(_under(_CATALOGUE, state.arrays))
        self.counters = StreamCounters(**values["counters"])
        self.position, self.clock = values["position"], values["clock"]
        self.checkpoints = values["checkpoint"]
        self._waiting = _unpacked(_under(_WAITING, state.arrays))
        self._since_m_step = values["since_m_step"]
        self._last_seen.load(state.arrays["last_seen"])
        self.histories.recover(_under(_HISTORIES, state.arrays), self.checkpoints)


def _under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): one for name, one in arrays.items() if name.startswith(prefix)}


def _packed(waiting: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    names = [name.encode("utf-8", "surrogatepass") for name in waiting]
    return {
        "names": np.frombuffer(b"".join(names), np.uint8),
        "ends": np.cumsum([len(name) for name in names], dtype=np.int64),
        "seen": np.array(list(waiting.values()), np.int64),
    }


def _unpacked(arrays: Mapping[str, NDArray[Any]]) -> OrderedDict[str, int]:
    text, start = arrays["names"].tobytes(), 0
    waiting: OrderedDict[str, int] = OrderedDict()
    for end, seen in zip(arrays["ends"].tolist(), arrays["seen"].tolist(), strict=True):
        waiting[text[start:end].decode("utf-8", "surrogatepass")] = seen
        start = end
    return waiting


def resolve_for_stream(config: Config, options: StreamOptions) -> Config:
    """The configuration of a stream: what batch training derives from its data is set for the expected catalogue.

    A stream predicts the next item, and has no neighbours, which would need all histories at once.
    """
    nodes = default_num_nodes(options.expected_items, config.paths_per_item, config.depth, first_path_size(config))
    derived = {"num_nodes": nodes, "structure_batch_size": options.batch_events, "next_items": 1, "neighbours": 0}
    return config.replace(**{name: value for name, value in derived.items() if getattr(config, name) is None})
