"""Keeping a published model up to date with a stream: what changed since the last publish, as a delta."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from pathdex.data.item_details import ItemDetails
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import BundleError, DataError
from pathdex.kernels.types import Ints
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.live_reader import LiveReader
from pathdex.recommenders.model_delta import SHAPES, ModelDelta, diff_states, has_other_id
from pathdex.recommenders.online import OnlineLearning
from pathdex.training.stream.growing import GrowingArray
from pathdex.training.stream.learner import PUBLISHED

MAX_DELTAS = 500
"""Deltas after which the folder is compacted: a server that starts applies all of them."""
LEAST_COMPACTED_BYTES = 1 << 28
"""Deltas of so many bytes are kept in any case, since a small model changes as a whole within seconds."""
NOT_PUBLISHED = -1


class StreamPublisher:
    """A live model that follows a stream, and the same changes in a live folder.

    The code of an item is its slot in the stream. The first publish writes a base, unless the folder holds a model
    already: that of a stream that was killed, which may be ahead of its checkpoint. The difference is then published as
    a delta, so servers need not load anything.
    """

    def __init__(
        self,
        online: OnlineLearning,
        folder: LivePublisher | None = None,
        records: list[dict[str, Any]] | None = None,
        details: ItemDetails | None = None,
    ) -> None:
        """Without a folder, only `model` is kept up to date. `records` are those of the training before the stream, and
        `details` the titles of items, also of those to come; None keeps the published ones."""
        self.online, self.folder, self.records, self.details = online, folder, records or [], details
        self.model: LiveModel | None = None
        """What was published last."""
        self._tokens = GrowingArray((), np.int64, NOT_PUBLISHED)
        """(slot,) which item was published there, by its token."""
        self._raised = np.empty(0, np.int64)
        """Slots whose published bias makes up for missing neighbours."""
        self._deltas = self._delta_bytes = self._neighbours = 0

    def publish(self, *, final: bool = False) -> LiveModel | None:
        """Publish what has changed; returns the published model, or None while there was never an item.

        If all items are removed, the published model is an empty one.
        The `final` publish has the neighbours of this moment, so it depends on the events alone. If this fails, nothing
        is lost: the next call publishes the changes.
        """
        is_empty = not len(self.online.state.catalogue)
        # A stream that was killed before its first checkpoint begins again. What it had published stays until then.
        counters = self.online.state.counters
        is_beginning = not (counters.events or counters.item_changes)
        if is_empty and self.model is None and (is_beginning or self.folder is None or not self.folder.has_base):
            return None
        if final:
            self.online.neighbours.find_now()
        elif self.online.neighbours.is_due:
            self.online.neighbours.begin()
        self.online.neighbours.take()
        if self.model is None:
            self._begin()
        elif self.model.items.kind == "int" and self.online.state.catalogue.has_text:
            self._write_base()
        else:
            changed = self.online.state.learner.changed.pending(PUBLISHED)
            if self.online.neighbours.version != self._neighbours:
                changed = np.union1d(changed, self._raised)
            self._append(self._delta(changed))
        self.online.state.learner.changed.clear(PUBLISHED)
        return self.model

    def _begin(self) -> None:
        published = self._published_model()
        if published is not None and self.details is None:
            self.details = published.details
        # A delta cannot change titles.
        if published is None or (self.details is not None and not self.details.is_same(published.details)):
            self._write_base()
            return
        try:
            delta = self._difference(published)
        except DataError:
            self._write_base()
            return
        self.model = published
        self._append(delta)
        self._note_published(np.arange(len(published.items)))

    def _difference(self, published: LiveModel) -> ModelDelta:
        """What turns a published model into the stream's, which may be behind it; `DataError` if no delta can."""
        near, catalogue = self.online.neighbours, self.online.state.catalogue
        size = max(catalogue.num_slots, len(published.items))
        changed = np.flatnonzero(has_other_id(published.items, catalogue.vocabulary_by_slot(size)))
        near.adopt(published.model_state.neighbours, changed)
        state, ids = self.online.snapshot_by_slot(self.records, size)
        delta = diff_states(published.model_state, state, published.items, ids)
        if near.version != self._neighbours:
            delta = dataclasses.replace(delta, neighbours=state.neighbours)
        delta.check(published.model_state, published.items)
        return delta

    def _published_model(self) -> LiveModel | None:
        """The model in the folder; None if there is none that a delta could continue."""
        if self.folder is None or not self.folder.has_base:
            return None
        reader = LiveReader(self.folder.path)
        try:
            model = reader.load()
        except (BundleError, DataError, OSError):
            return None
        same = all(getattr(model.config, name) == getattr(self.online.config, name) for name in SHAPES)
        complete = reader.position is not None and reader.position.digest == self.folder.version.digest
        return model if same and complete else None

    def _write_base(self) -> None:
        state, ids = self.online.snapshot_by_slot(self.records)
        model = DeepRetrieval.of_state(state, ids).describe_items(self.details)
        if self.folder is not None:
            self.folder.publish_base(model)
        self.model, self._neighbours = LiveModel(model), self.online.neighbours.version
        self._deltas = self._delta_bytes = 0
        self._note_published(np.arange(len(ids)))

    def _append(self, delta: ModelDelta) -> None:
        assert self.model is not None
        if self.folder is not None:
            self.folder.publish(delta)
            self._deltas += 1
            self._delta_bytes += delta.nbytes
        self.model.apply(delta)
        if delta.neighbours is not None:
            self._neighbours = self.online.neighbours.version
        self._note_published(delta.touched)
        self._compact_if_due()

    def _delta(self, slots: Ints) -> ModelDelta:
        """What changed in these slots, and the dense weights."""
        assert self.model is not None
        learner, catalogue = self.online.state.learner, self.online.state.catalogue
        self._tokens.resize(max(len(self.model.items), catalogue.num_slots))
        used = learner.used[slots]
        held, free = slots[used], slots[~used]
        id_codes = held[self._current_tokens(held) != self._tokens.values[held]]
        gone = free[(self._tokens.values[free] != NOT_PUBLISHED) | (free >= len(self.model.items))]
        names = [str(catalogue.id(slot)) for slot in id_codes.tolist()]
        ids = Vocabulary(np.array(names, np.int64) if self.model.items.kind == "int" else names)
        before, now, size = self.model.config.to_dict(), self.online.config.to_dict(), len(self._tokens.values)
        near = self.online.neighbours
        changed = near.version != self._neighbours
        return ModelDelta(
            num_items=size,
            items=held,
            rows=self.online.published_rows(held),
            paths=learner.paths[held],
            counts=self.online.published_counts(held),
            id_codes=id_codes,
            ids=ids,
            removed=gone,
            weights=self.online.dense_weights(),
            settings={name: value for name, value in now.items() if before[name] != value},
            neighbours=near.lists(np.arange(size)) if changed else None,
        )

    def _current_tokens(self, slots: Ints) -> Ints:
        return np.fromiter(map(self.online.state.catalogue.token, slots.tolist()), np.int64, len(slots))

    def _note_published(self, slots: Ints) -> None:
        learner = self.online.state.learner
        self._tokens.resize(max(len(self._tokens.values), int(slots.max(initial=-1)) + 1))
        self._tokens.values[slots] = NOT_PUBLISHED
        held = slots[slots < learner.num_slots]
        held = held[learner.used[held]]
        self._tokens.values[held] = self._current_tokens(held)
        self._raised = np.union1d(np.setdiff1d(self._raised, slots), held[self.online.raised(held)])

    def _compact_if_due(self) -> None:
        """Write a new base in the background once a server that starts would have too much to apply."""
        if self.folder is None or self.model is None:
            return
        base_bytes = self.model.model_state.rows.nbytes
        if self._deltas >= MAX_DELTAS or self._delta_bytes > max(base_bytes, LEAST_COMPACTED_BYTES):
            self.folder.compact(wait=False)
            self._deltas = self._delta_bytes = 0
