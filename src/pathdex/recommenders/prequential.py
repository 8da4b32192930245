"""Prequential evaluation: every event is predicted by the published model before it is learned from."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pathdex.data.events import Event, StreamRecord
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN
from pathdex.retrieval.filters import Filters

if TYPE_CHECKING:
    from pathdex.recommenders.deep_retrieval import DeepRetrieval
    from pathdex.training.stream.state import StreamState

WINDOW = 10_000
"""Predictions that the running figure averages."""


class PrequentialRecall:
    """recall@n of single events: 1 if the item is among the best n for the history before it, with seen items removed.

    An item that the model does not know counts as missed, and so does one that the user has seen. At most `sample`
    events of a batch are predicted, evenly spread over it.
    """

    def __init__(self, n: int = 10, sample: int = 32, candidates: int | None = None) -> None:
        self.n, self.sample = n, sample
        self.candidates = 10 * n if candidates is None else candidates
        self.hits: deque[bool] = deque(maxlen=WINDOW)
        self.total = self.found = 0

    @property
    def recent(self) -> float | None:
        """The mean over the last predictions."""
        return float(np.mean(self.hits)) if self.hits else None

    @property
    def overall(self) -> float | None:
        """The mean over all predictions."""
        return self.found / self.total if self.total else None

    def predict(self, model: DeepRetrieval, state: StreamState, records: Sequence[StreamRecord]) -> NDArray[np.bool_]:
        """Predict some of the events that the state is about to learn from; returns which were hit.

        Item changes are no events.
        """
        events = [one for one in records if isinstance(one, Event)]
        if not events:
            return np.empty(0, np.bool_)
        chosen = np.unique(np.linspace(0, len(events) - 1, min(self.sample, len(events))).astype(int))
        picked = [events[number] for number in chosen]
        histories = [self._history(model, state, event) for event in picked]
        targets = model.items.codes([event.item for event in picked])
        rows = Ragged.from_rows([np.array(one, np.int32) for one in histories])
        limit = min(self.n, model.items.num_ids)
        hits: NDArray[np.bool_] = np.zeros(len(picked), np.bool_)
        if limit:  # Else all items were removed.
            answers = model.rank(rows, limit, Filters(exclude=rows), candidates=max(self.candidates, limit)).items
            hits = (answers == targets[:, None]).any(axis=1) & (targets != UNKNOWN)
        self.hits.extend(hits.tolist())
        self.total, self.found = self.total + len(hits), self.found + int(hits.sum())
        return hits

    @staticmethod
    def _history(model: DeepRetrieval, state: StreamState, event: Event) -> list[int]:
        slots = state.catalogue.slots_of(state.histories.tokens(str(event.user)))
        ids = [one for one in map(state.catalogue.id, slots) if one is not None]
        codes = model.items.codes(ids) if ids else np.empty(0, np.int64)
        return [int(code) for code in codes if code != UNKNOWN]
