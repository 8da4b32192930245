"""Which items of a stream share attribute values, so that a new item can start near those that are like it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.training.stream.text_arrays import pack_texts, unpack_texts

LISTED = 256
"""Items of one value that are compared: the ones that were described last. It bounds the cost of a new item."""
COMPARED = 64
"""Values of a new item that are compared: its rarest ones."""
NEAREST = 10
"""A new item starts near so many of the best matches."""


class AttributeIndex:
    """An inverted index from values, such as `genre=drama`, to the slots of items that have them.

    How much two items share is the weighted Jaccard similarity of their values. A value weighs log(N / n) if n of the N
    described items have it, so rare values count more, and one that all items have counts nothing.
    """

    def __init__(self) -> None:
        self._items: dict[str, dict[int, None]] = {}
        self._values: dict[int, tuple[str, ...]] = {}
        """The values of each described slot, in the order of description."""
        self._names: dict[str, str] = {}
        """One text object per value."""
        self._order: dict[int, int] = {}
        """When each slot was described, as a number that grows."""
        self._next = 0

    def __len__(self) -> int:
        """The number of described items."""
        return len(self._values)

    def __contains__(self, slot: int) -> bool:
        return slot in self._values

    def describe(self, slot: int, values: Sequence[str]) -> None:
        """The item in a slot has these values, and no others."""
        self.forget(slot)
        if not values:
            return
        self._order[slot], self._next = self._next, self._next + 1
        self._values[slot] = shared = tuple(self._names.setdefault(one, one) for one in values)
        for one in shared:
            self._items.setdefault(one, {})[slot] = None

    def forget(self, slot: int) -> None:
        """The item in a slot is gone."""
        self._order.pop(slot, None)
        for one in self._values.pop(slot, ()):
            del self._items[one][slot]
            if not self._items[one]:
                del self._items[one], self._names[one]

    def nearest(self, values: Sequence[str], counts: NDArray[np.int64]) -> tuple[list[int], list[float]]:
        """The slots of the items that share most with these values, and how much, best first.

        `counts` are the occurrences by slot: of equal matches, the most frequent is the best, since it has learned
        most.
        """
        rarest = sorted(values, key=lambda one: (-self._weight(one), one))[:COMPARED]
        weights = {one: self._weight(one) for one in rarest}
        others: dict[str, float] = {}
        own = sum(weights.values())
        listed = {
            slot
            for one, weight in weights.items()
            if weight > 0
            for slot in islice(reversed(self._items.get(one, {})), LISTED)
        }
        scored = []
        for slot in listed:
            both = rest = 0.0
            for one in self._values[slot]:
                if one in weights:
                    both += weights[one]
                else:
                    rest += others.get(one) or others.setdefault(one, self._weight(one))
            scored.append((both / (own + rest), int(counts[slot]), -slot))
        best = sorted(scored, reverse=True)[:NEAREST]
        return [-slot for _, _, slot in best], [similarity for similarity, _, _ in best]

    def _weight(self, value: str) -> float:
        """Of a value that no item has, that of one that one item has."""
        return math.log((1 + len(self._values)) / (1 + max(1, len(self._items.get(value, ())))))

    def state_dict(self, slots: NDArray[np.int64] | None = None) -> dict[str, NDArray[Any]]:
        """All described slots as arrays, or only these slots."""
        chosen = list(self._values) if slots is None else slots.tolist()
        values = [self._values.get(slot, ()) for slot in chosen]
        # In the order of their use, which does not depend on values that are gone.
        used = dict.fromkeys(one for several in values for one in several)
        codes = {one: code for code, one in enumerate(used)}
        return {
            **pack_texts(used),
            "slots": np.array(chosen, np.int64),
            "order": np.array([self._order.get(slot, 0) for slot in chosen], np.int64),
            "lengths": np.array([len(one) for one in values], np.int64),
            "values": np.array([codes[one] for several in values for one in several], np.int64),
            "next": np.array([self._next], np.int64),
        }

    def update(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over the slots of a later `state_dict`; one of an earlier release has none."""
        if not state:
            return
        names, values, start, found = unpack_texts(state), state["values"].tolist(), 0, []
        for slot, order, length in zip(*(state[name].tolist() for name in ("slots", "order", "lengths")), strict=True):
            self.forget(slot)
            if length:
                found.append((order, slot, [names[code] for code in values[start : start + length]]))
            start += length
        for order, slot, several in sorted(found):
            self._next = order
            self.describe(slot, several)
        self._next = int(state["next"][0])

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state_dict` returned."""
        for slot in list(self._values):
            self.forget(slot)
        self.update(state)
