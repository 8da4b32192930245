"""Items that were removed through this worker and are still in its model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pathdex.data.item_changes import ItemChange, RemoveItem
from pathdex.data.vocabulary import UNKNOWN, Id
from pathdex.server.model_loader import ServedModel

MOST = 10_000
"""Items hidden at a time; the ones that were removed first come back first."""
SECONDS = 3600.0
"""The longest time to hide an item: it may have been added again through another worker."""


@dataclass
class _Hidden:
    until: float
    seen: bool = False
    """Whether it was in the model since it was removed."""


class HiddenItems:
    """Hides removed items until a model without them is published. Other workers recommend them until then.

    Used in the event loop only.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._items: dict[str, _Hidden] = {}
        self._clock = clock
        self._version: str | None = None
        self._found: list[Id] = []

    def apply(self, changes: Sequence[ItemChange]) -> None:
        """Hide what is removed, show what is added."""
        for change in changes:
            self._items.pop(str(change.item), None)
            if isinstance(change, RemoveItem):
                self._items[str(change.item)] = _Hidden(self._clock() + SECONDS)
        while len(self._items) > MOST:
            del self._items[next(iter(self._items))]
        self._version = None

    def in_model(self, served: ServedModel) -> Sequence[Id]:
        """The hidden items that the model still has."""
        if not self._items:
            return ()
        if served.version != self._version:
            self._look(served)
        return self._found

    def _look(self, served: ServedModel) -> None:
        items, now = served.recommender.items, self._clock()
        self._version, self._found = served.version, []
        for text, hidden in list(self._items.items()):
            code = items.code(text)
            if hidden.until <= now or (code == UNKNOWN and hidden.seen):
                del self._items[text]
            elif code != UNKNOWN:
                hidden.seen = True
                self._found.append(items.id(code))
