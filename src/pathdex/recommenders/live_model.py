"""Deep Retrieval that takes deltas while it answers queries."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.data.attributes import Attributes
from pathdex.data.interactions import Interactions
from pathdex.data.live_vocabulary import LiveVocabulary
from pathdex.data.ragged import Ragged
from pathdex.data.source_table import Source
from pathdex.data.vocabulary import Id
from pathdex.errors import ConfigError
from pathdex.index.health import IndexHealth
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.item_list import ItemList, ItemLists
from pathdex.recommenders.model_delta import NO_CODES, ModelDelta, changed_config, hidden_by
from pathdex.recommenders.model_state import ModelState, TorchEncoder
from pathdex.recommenders.query import History, Query
from pathdex.retrieval.explain import Explanation, WhyNot
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.live_index import ItemChanges, LiveIndex, removed_rows
from pathdex.retrieval.ranking import Ranking
from pathdex.retrieval.retriever import Retriever
from pathdex.retrieval.shared_lock import SharedLock
from pathdex.retrieval.user_state import UserState
from pathdex.storage.array_folder import read_stable
from pathdex.storage.bundle import BUNDLE_FORMAT, Bundle, write_bundle

BATCH = 256
"""Queries of a batch that are answered from the same state."""


class LiveModel(DeepRetrieval):
    """A Deep Retrieval model that `apply` changes in place, in milliseconds, while other threads query it.

    Every answer is that of the state before or after a delta. `save` writes an ordinary bundle. A `UserState` holds
    codes of items, so it should not be kept for longer than removed items' places stay free.
    """

    def __init__(self, model: DeepRetrieval, *, map_files: bool = False) -> None:
        """`map_files` maps the files of the model's bundle again instead of copying arrays; see `open`."""
        super().__init__(model.config)
        self.options, state = model.options, model.model_state
        self._reading, self._details = model.reading, model.details
        self._lock, self._writer = SharedLock(), threading.Lock()
        self._items = LiveVocabulary(model.items)
        self._attributes_read: Attributes | None = None
        self._adopt(state)
        self._index = LiveIndex(model.retriever, state.rows, state.log_shares, map_files=map_files)
        self._show(self._index.retriever, state)
        self._requested = self.config

    @classmethod
    def open(cls, bundle: str | Path) -> Self:
        """Map a bundle. Unchanged rows stay shared with other processes that map it."""
        folder = Path(bundle)
        return read_stable(folder, BUNDLE_FORMAT, lambda: cls(DeepRetrieval.load(folder), map_files=True))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        return cls.open(path)

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Self:
        return cls(DeepRetrieval.from_bundle(bundle))

    @cached_property
    def retriever(self) -> Retriever:
        return self._index.retriever

    def unchanging(self) -> SharedLock:
        return self._lock

    @property
    def num_placed(self) -> int:
        """The items that are on paths; only these are recommended."""
        return self.postings.num_entries // self.config.paths_per_item

    def warmup(self) -> Self:
        """Compile or load what queries and deltas need; returns the model."""
        super().warmup()
        state = self.model_state
        rows, paths, counts = removed_rows(NO_CODES, state.rows.shape[1], state.paths.shape[1])
        self.apply(ModelDelta(len(self.items), NO_CODES, rows, paths, counts))
        return self

    def apply(self, delta: ModelDelta) -> float:
        """Apply a delta; returns the seconds for which queries had to wait. `DataError` if it does not fit."""
        with self._writer:
            state = self.model_state
            delta.check(state, self.items)
            config, weights = changed_config(state.config, delta), delta.weights or state.weights
            following = dataclasses.replace(state, config=config, weights=weights)
            change = _item_changes(delta, state)
            prepared = self._index.prepare(
                change, config, weights, TorchEncoder(following), new_weights=bool(delta.weights)
            )
            attributes = self._attributes
            if attributes is not None and self._attributes_read is not None:
                names = delta.ids.ids(range(len(delta.ids)))
                attributes = attributes.changed(
                    self._attributes_read, delta.id_codes, names, delta.removed, delta.num_items
                )
            with self._lock.exclusive():
                began = time.perf_counter()
                retriever = self._index.commit(prepared)
                assert isinstance(self._items, LiveVocabulary)
                self._items.apply(delta.id_codes, delta.ids, delta.removed, delta.num_items)
                self._attributes = attributes
                self._show(retriever, following)
                return time.perf_counter() - began

    def _show(self, retriever: Retriever, state: ModelState) -> None:
        """Answer from this retriever."""
        rows, paths, counts, log_shares = self._index.arrays()
        self._adopt(
            dataclasses.replace(
                state,
                rows=rows,
                paths=paths,
                counts=counts,
                postings=retriever.postings,
                log_shares=log_shares,
                neighbours=retriever.neighbours,
            )
        )
        self.retriever = retriever

    def fit(self, data: Interactions | Source, **options: Any) -> Self:
        problem = "a live model is changed by deltas, not by fit; train a DeepRetrieval and write it as a new base"
        raise ConfigError([problem])

    def attach(self, attributes: Attributes | None) -> Self:
        with self._writer:
            aligned = None if attributes is None else attributes.align(self.items)
            with self._lock.exclusive():
                self._attributes, self._attributes_read = aligned, attributes
                self._where_details = False
        return self

    def recommend_batch(self, histories: Sequence[History | Query], n: int = 10, **options: Any) -> ItemLists:
        histories, found = list(histories), ItemLists()
        if options.get("where") or any(isinstance(one, Query) and one.where for one in histories):
            self.attach_details()  # It waits for the lock, which queries share.
        for name in ("deny", "allow"):
            if options.get(name) is not None:
                options[name] = list(options[name])
        for first in range(0, max(1, len(histories)), BATCH):
            with self._lock:
                found += super().recommend_batch(histories[first : first + BATCH], n, **options)
        return found

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        with self._lock:
            return super().rank(histories, n, filters, **options)

    def candidate_items(
        self, histories: Ragged, filters: Filters = NO_FILTERS, *, n: int = 1, **options: Any
    ) -> Ragged:
        with self._lock:
            return super().candidate_items(histories, filters, n=n, **options)

    def user_vectors(self, histories: Ragged) -> NDArray[np.float32]:
        with self._lock:
            return super().user_vectors(histories)

    def state(self, history: History = ()) -> UserState:
        with self._lock:
            return super().state(history)

    def advance(self, state: UserState, item: Id) -> UserState:
        with self._lock:
            return super().advance(state, item)

    def recommend_next(
        self,
        state: UserState,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        deny: Iterable[Id] = (),
        allow: Iterable[Id] | None = None,
        where: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ItemList:
        if where:
            self.attach_details()
        with self._lock:
            return super().recommend_next(
                state, n, exclude_seen=exclude_seen, deny=deny, allow=allow, where=where, **options
            )

    def similar_items(self, item: Id, n: int = 10) -> ItemList:
        with self._lock:
            return super().similar_items(item, n)

    def item_paths(self, item: Id) -> list[tuple[int, ...]]:
        with self._lock:
            return super().item_paths(item)

    def path_items(self, path: Sequence[int]) -> list[Id]:
        with self._lock:
            return super().path_items(path)

    def explain(self, history: History, item: Id, **options: Any) -> Explanation:
        with self._lock:
            return super().explain(history, item, **options)

    def why_not(self, history: History, item: Id, **options: Any) -> WhyNot:
        with self._lock:
            return super().why_not(history, item, **options)

    def health(self) -> IndexHealth:
        with self._lock:
            return super().health()

    def get_state(self) -> EstimatorState:
        with self._lock:
            return super().get_state()

    def to_bundle(self) -> Bundle:
        """The state of this moment. The bundle shares the rows, which the next delta changes; `save` waits instead."""
        with self._lock:
            return super().to_bundle()

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the state of this moment as an ordinary bundle. Deltas wait meanwhile; queries do not."""
        with self._writer:
            return write_bundle(Path(path), super().to_bundle(), overwrite=overwrite)


def _item_changes(delta: ModelDelta, state: ModelState) -> ItemChanges:
    """Changed and removed items together, by code."""
    rows, paths, counts = removed_rows(delta.removed, state.rows.shape[1], state.paths.shape[1])
    order = np.argsort(delta.touched)
    return ItemChanges(
        delta.num_items,
        delta.touched[order],
        np.concatenate([delta.rows.reshape(-1, rows.shape[1]), rows])[order].astype(np.float32, copy=False),
        np.concatenate([delta.paths.reshape(-1, paths.shape[1]), paths])[order],
        np.concatenate([delta.counts, counts])[order],
        hidden_by(delta),
        delta.neighbours,
    )
