"""The neighbours of a stream's items, found again in the histories of recent users from time to time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pathdex.data.matrix import interaction_matrix
from pathdex.data.ragged import Ragged
from pathdex.index.neighbours import nearest_items
from pathdex.kernels.neighbours import Neighbours
from pathdex.recommenders.model_state import SHRINKAGE, with_defaults

if TYPE_CHECKING:
    from pathdex.training.stream.state import StreamState

NEIGHBOUR_USERS = 30_000
"""Neighbours are found in the histories of so many users, the latest: the stream waits while they are read."""
PER_M_STEP = 2
"""How often neighbours are found again between two full M-steps."""
NEW = -1
"""The old code of an item that had none."""


class StreamNeighbours:
    """Lists of neighbours by slot: those of the model that the stream continues, later those of recent users.

    The lists change what the model answers, not what it learns, so they are found in the background and are no part of
    a checkpoint. A model that is continued keeps its lists until the stream has as many events as it was trained on.
    """

    def __init__(self, state: StreamState, lists: Neighbours | None = None) -> None:
        self._state, self._lists = state, lists
        self._tokens = np.arange(0 if lists is None else len(lists.offsets) - 1)
        """(slot,) the item that each list belongs to."""
        self._trained_on = int(state.learner.counts[state.learner.used].sum())
        self._kept = with_defaults(state.config).neighbours or 0
        self._found_at = 0
        self.version = 0
        """Changes with the lists."""
        self._finding: _Search | None = None

    def adopt(self, published: Neighbours | None, changed: NDArray[np.int64]) -> None:
        """Go on with the lists of a published model, unless others were found. Slots in `changed` hold other items."""
        if self.version or published is None:
            return
        size = min(len(published.offsets) - 1, self._state.catalogue.num_slots)
        tokens = np.fromiter(map(self._state.catalogue.token, range(size)), np.int64, size)
        tokens[: len(published.hidden)][published.hidden[:size]] = NEW
        tokens[changed[changed < size]] = NEW
        self._lists, self._tokens = published, tokens

    @property
    def is_due(self) -> bool:
        """Whether to find neighbours again."""
        return self._finding is None and self._can_find(self._state.counters.learned - self._found_at)

    def _can_find(self, events: int) -> bool:
        """Whether so many events are enough."""
        enough = events >= self._state.options.m_step_events // PER_M_STEP
        return self._kept > 0 and enough and self._state.counters.learned >= self._trained_on

    def find_now(self) -> None:
        """Bring the lists up to date with this moment, unless the stream is too short for any."""
        self.take(wait=True)
        learned = self._state.counters.learned
        if self._found_at != learned and self._can_find(learned):
            self.begin()
            self.take(wait=True)

    def begin(self) -> None:
        """Start to find neighbours in the histories of this moment."""
        state = self._state
        self._found_at = state.counters.learned
        tokens = np.fromiter(map(state.catalogue.token, range(state.catalogue.num_slots)), np.int64)
        self._finding = _Search(state.recent_histories(NEIGHBOUR_USERS), tokens, self._kept)

    def take(self, *, wait: bool = False) -> None:
        """Take over what was found, if it is there already or with `wait`."""
        if self._finding is not None and (wait or not self._finding.is_alive()):
            found, self._finding = self._finding, None
            self._lists, self._tokens = found.result(), found.tokens
            self.version += 1

    def _knows(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether neighbours were looked for with the items in these slots."""
        catalogue, known = self._state.catalogue, len(self._tokens)
        return np.array(
            [
                slot < min(known, catalogue.num_slots) and catalogue.token(slot) == self._tokens[slot]
                for slot in slots.tolist()
            ],
            np.bool_,
        )

    def lists(self, slots: NDArray[np.int64]) -> Neighbours | None:
        """The neighbours of the items in these slots, by their place in `slots`; None if there are none yet.

        An item that came after the lists were made has no neighbours.
        """
        if self._lists is None:
            return None
        return carry_neighbours(self._lists, np.where(self._knows(slots), slots, NEW))

    def missing(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the items in these slots came after the lists that others have."""
        return np.zeros(len(slots), np.bool_) if self._lists is None else ~self._knows(slots)


class _Search:
    """Finds neighbours in a thread."""

    def __init__(self, histories: Ragged, tokens: NDArray[np.int64], k: int) -> None:
        self.tokens = tokens
        self._found: Neighbours | None = None
        self._failure: BaseException | None = None

        def work() -> None:
            try:
                matrix = interaction_matrix(histories, len(tokens), binary=True)
                self._found = nearest_items(matrix, k, shrinkage=SHRINKAGE, threads=1)
            except BaseException as error:
                self._failure = error

        self._thread = threading.Thread(target=work, name="pathdex-neighbours", daemon=True)
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def result(self) -> Neighbours:
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        assert self._found is not None
        return self._found


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
