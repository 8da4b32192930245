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
from pathdex.data.events import Event, Position, StreamRecord
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.training.candidate_target import first_path_size
from pathdex.training.loop import TrainingState
from pathdex.training.stream.attribute_index import AttributeIndex
from pathdex.training.stream.catalogue import StreamCatalogue
from pathdex.training.stream.catalogue_changes import CatalogueChanges, Sample
from pathdex.training.stream.growing import GrowingArray
from pathdex.training.stream.histories import UserHistories
from pathdex.training.stream.learner import ITEMS, SAVED, Samples, StreamLearner
from pathdex.training.stream.options import StreamOptions
from pathdex.training.stream.replay import RecentUsers, draw_window

M_STEP_WAIT = 4
"""The paths of a full M-step are taken after this part of the events between two of them; it has so long to finish."""
WAITING_ITEMS = 100_000
"""Items that wait for admission; the ones that waited longest are forgotten first."""
CATALOGUE, ATTRIBUTES, RECENT, SLOTS, LAST_SEEN = "catalogue.", "attributes.", "recent.", "slots", "last_seen"
"""Names of arrays in a checkpoint. `SLOTS` are those that changed since the checkpoint before."""
_HISTORIES, _WAITING, _CHANGES = "histories.", "waiting.", "changes."


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
    item_changes: int = 0
    """Records that add or remove an item; they are no events."""
    unknown_removals: int = 0
    """Removals of items that were not there."""
    blocked: int = 0
    """Events of items that were removed by a record."""
    malformed: int = 0
    """Records that are neither events nor item changes."""
    lost: int = 0
    """Events that the broker dropped before they were read, as far as it can tell."""


@dataclass(frozen=True)
class StreamStep:
    """What a batch of events led to."""

    losses: Mapping[str, float]
    m_step: Mapping[str, Any] | None = None
    """Figures of a full M-step whose paths were taken after the batch."""


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
        self.learner = StreamLearner(
            self.config, seed=seed, rate=self.options.learning_rate_scale, replay_steps=self.options.replay_steps
        )
        self.catalogue = StreamCatalogue()
        kept = max(self.config.history_length, self.options.replay_history if self.options.replay else 0)
        self.histories = UserHistories(kept, histories)
        self.counters = StreamCounters()
        self.position: Position | None = None
        self.checkpoints = 0
        self.clock = 0.0
        """The latest event time so far."""
        self._last_seen = GrowingArray((), np.float64, -np.inf)
        self._waiting: OrderedDict[str, int] = OrderedDict()
        self._recent = RecentUsers(self.options.replay_events)
        self._since_m_step = 0
        self.changes = CatalogueChanges()
        self.attributes = AttributeIndex()
        self.table: Mapping[str, Sequence[str]] = {}
        """Attribute values by item, known beforehand. Not part of a checkpoint, unlike those of the items."""

    def apply(
        self, events: Sequence[StreamRecord], position: Position | None = None, *, malformed: int = 0, lost: int = 0
    ) -> StreamStep:
        """Learn from a batch of events, with item changes among them; `position` is that of the source after it.

        `malformed` and `lost` are counts of what else was between the last position and this one.
        """
        samples: list[Sample] = []
        for event in events:
            if not isinstance(event, Event):
                samples = self.changes.apply(self, event, samples)
            elif self.changes.blocks(event.item):
                self.counters.blocked += 1
            elif (sample := self._take(event)) is not None:
                samples.append(sample)
        histories, targets = [history for history, _ in samples], [target for _, target in samples]
        self.counters.events += sum(isinstance(one, Event) for one in events)
        self.counters.learned += len(targets)
        self.counters.malformed, self.counters.lost = self.counters.malformed + malformed, self.counters.lost + lost
        self.position = position
        losses: Mapping[str, float] = {}
        if targets:
            replayed = self._replayed(round(self.options.replay * len(targets)))
            losses = self.learner.learn(Samples(histories, np.array(targets, np.int64), replayed))
        self._since_m_step += len(targets)
        figures = None
        if self._since_m_step >= self.options.m_step_events // M_STEP_WAIT:
            figures = self.learner.finish_m_step()
        if self._since_m_step >= self.options.m_step_events:
            self._since_m_step = 0
            self._forget_old()
            self.learner.begin_m_step()
        return StreamStep(losses, figures)

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
        self.catalogue = StreamCatalogue.from_vocabulary(items)
        used = np.ones(len(items), np.bool_)
        used[items.removed] = False
        self.learner.adopt(rows, paths, counts, weights, used)
        self._last_seen.load(np.full(len(items), self.clock))

    def observe(self, history: Sequence[Id], item: Id) -> None:
        """Learn from one item that followed a history, which belongs to no known user. Unknown items of it are left
        out; the item joins the catalogue, unless it was removed."""
        if self.changes.blocks(item):
            self.counters.events += 1
            self.counters.blocked += 1
            return
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
        history = self.catalogue.slots_of(tokens[-self.config.history_length :])
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
            self._recent.append(user)
        if event.weight > 0:
            return history, slot
        self.learner.changed.mark([slot])
        return None

    def recent_histories(self, most: int) -> Ragged:
        """The kept histories of the users of recent events, at most so many, in slots."""
        rows = [self._known_history(user) for user in self._recent.latest(most)]
        return Ragged.from_rows([np.array(row, np.int32) for row in rows if row])

    def _replayed(self, samples: int) -> list[list[int]]:
        """Windows of the histories of random recent users, in slots, that give about so many samples."""
        generator = np.random.default_rng([self.learner.seed, 3, self.learner.steps])
        length, keep = self.config.history_length, self.histories.keep

        def window_of(user: str) -> list[int]:
            return self.catalogue.slots_of(draw_window(self.histories.tokens(user), length, keep, generator))

        return self._recent.draw(samples, length, window_of, generator)

    def _known_history(self, user: str) -> list[int]:
        return self.catalogue.slots_of(self.histories.tokens(user))

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

    def use_table(self, table: Mapping[str, Sequence[str]]) -> None:
        """Look up the attribute values of items in a table from now on; known items without any get theirs."""
        self.table = table
        for slot in range(self.catalogue.num_slots):
            if (item := self.catalogue.id(slot)) is not None and slot not in self.attributes:
                self.describe(slot, table.get(item, ()))

    def describe(self, slot: int, values: Sequence[str]) -> None:
        """The item in a slot has these attribute values."""
        if values:
            self.attributes.describe(slot, values)
            self.learner.changed.mark([slot])

    def add_item(self, item: Id, like: Sequence[int] = (), values: Sequence[str] = (), *, named: bool = False) -> int:
        """Add an item; returns its slot.

        It starts near items that share its attribute `values`, by default those in the table. If there are none, or if
        similar items were `named`, it starts near the items in the slots `like`.
        """
        if item in self.catalogue:
            return self.catalogue.slot(item)
        values, weights = values or self.table.get(str(item), ()), None
        if values and not named:
            near, weights = self.attributes.nearest(values, self.learner.counts)
            like, weights = (near, weights) if near else (like, None)
        slot = self.catalogue.add(item)
        self.learner.add_item(slot, like, weights)
        self.describe(slot, values)
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
                self.attributes.forget(slot)
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
        """The state for a checkpoint; call `committed` once it is on disk."""
        return self._state_dict(None)

    def changes_dict(self) -> TrainingState:
        """What a checkpoint needs that follows the last committed one (`checkpoint_merge.merge_changes`).

        Of arrays with one row per slot, only the rows of the changed slots.
        """
        slots = self.learner.changed.pending(SAVED)
        state = self._state_dict(slots)
        return TrainingState(state.values, {**state.arrays, SLOTS: slots})

    def _state_dict(self, slots: NDArray[np.int64] | None) -> TrainingState:
        learner = self.learner.state_dict(slots)
        recent = self._recent.state_dict() if slots is None else self._recent.changes_dict()
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
                LAST_SEEN: self._last_seen.values if slots is None else self._last_seen.values[slots],
                **{f"{CATALOGUE}{name}": one for name, one in self.catalogue.state_dict(slots).items()},
                **{f"{_WAITING}{name}": one for name, one in _packed(self._waiting).items()},
                **{f"{_CHANGES}{name}": one for name, one in self.changes.state_dict().items()},
                **{f"{ATTRIBUTES}{name}": one for name, one in self.attributes.state_dict(slots).items()},
                **{f"{RECENT}{name}": one for name, one in recent.items()},
                **{f"{_HISTORIES}{name}": one for name, one in self.histories.journal().items()},
            },
        )

    def committed(self) -> None:
        """The checkpoint of the last `state_dict` or `changes_dict` is on disk."""
        self.histories.commit(self.checkpoints + 1)
        self.checkpoints += 1
        self.learner.changed.clear(SAVED)
        self._recent.committed()

    def load_state_dict(self, state: TrainingState) -> None:
        """Return to a checkpoint."""
        values = state.values
        self.learner.load_state_dict(state)
        self.catalogue = StreamCatalogue.from_state_dict(under(CATALOGUE, state.arrays))
        self.counters = StreamCounters(**values["counters"])
        self.position, self.clock = values["position"], values["clock"]
        self.checkpoints = values["checkpoint"]
        self.learner.changed.clear(SAVED)
        self._waiting = _unpacked(under(_WAITING, state.arrays))
        self.changes.load_state_dict(under(_CHANGES, state.arrays))
        self.attributes.load_state_dict(under(ATTRIBUTES, state.arrays))
        self.use_table(self.table)
        self._recent.load_state_dict(under(RECENT, state.arrays))
        self._since_m_step = values["since_m_step"]
        self._last_seen.load(state.arrays[LAST_SEEN])
        self.histories.recover(under(_HISTORIES, state.arrays), self.checkpoints)


def has_row_per_slot(name: str) -> bool:
    """Whether an array of a checkpoint has one row per slot."""
    return name.startswith(ITEMS) or name == LAST_SEEN


def under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with a prefix, without it."""
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

    A stream predicts the next item.
    """
    nodes = default_num_nodes(options.expected_items, config.paths_per_item, config.depth, first_path_size(config))
    derived = {"num_nodes": nodes, "structure_batch_size": options.batch_events, "next_items": 1}
    return config.replace(**{name: value for name, value in derived.items() if getattr(config, name) is None})
