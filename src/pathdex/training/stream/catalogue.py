"""The items of a stream: ids that come and go, and the slots of the item table that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary

_GENERATION_SHIFT = 32
_SLOT_MASK = 2**_GENERATION_SHIFT - 1


class StreamCatalogue:
    """Maps ids to slots. The slot of a removed item is used again by a later one.

    What outlives an item, such as a user's history, must not name its slot alone, since the slot may hold another item
    by then. It keeps a *token* instead: the slot and how often the slot was in use before. `slots_of` drops the tokens
    of removed items.
    """

    def __init__(self) -> None:
        self._slot_of: dict[str, int] = {}
        self._ids: list[str | None] = []
        self._free: list[int] = []
        self._generation: list[int] = []
        self._texts = 0
        """The number of ids that are no integers."""

    def __len__(self) -> int:
        """The number of items."""
        return len(self._slot_of)

    def __contains__(self, item: Id) -> bool:
        return str(item) in self._slot_of

    @property
    def num_slots(self) -> int:
        """The number of slots, free ones included."""
        return len(self._ids)

    @property
    def free_slots(self) -> tuple[int, ...]:
        return tuple(self._free)

    def slot(self, item: Id) -> int:
        """The slot of an item, or `UNKNOWN`. The text "12" and the integer 12 are the same id."""
        return self._slot_of.get(str(item), UNKNOWN)

    def add(self, item: Id) -> int:
        """The slot of an item, which is added if it is new. Free slots are taken first, the oldest first."""
        text = str(item)
        if (known := self._slot_of.get(text)) is not None:
            return known
        if self._free:
            slot = self._free.pop(0)
            self._ids[slot] = text
        else:
            slot = len(self._ids)
            self._ids.append(text)
            self._generation.append(0)
        self._slot_of[text] = slot
        self._texts += not _is_integer(text)
        return slot

    def remove(self, item: Id) -> int:
        """Free the slot of an item; returns the slot, or `UNKNOWN` if there is no such item."""
        slot = self._slot_of.pop(str(item), UNKNOWN)
        if slot != UNKNOWN:
            self._texts -= not _is_integer(str(item))
            self._ids[slot] = None
            self._generation[slot] += 1
            self._free.append(slot)
        return slot

    def token(self, slot: int) -> int:
        """A number for the item that is in a slot now; no other item ever has the same."""
        return self._generation[slot] << _GENERATION_SHIFT | slot

    def slots_of(self, tokens: Iterable[int]) -> list[int]:
        """The slots of the items that are still there, in order."""
        generation = self._generation
        return [
            slot
            for token in tokens
            if generation[slot := token & _SLOT_MASK] == token >> _GENERATION_SHIFT and self._ids[slot] is not None
        ]

    def id(self, slot: int) -> str | None:
        """The id in a slot as text; None for a free slot."""
        return self._ids[slot]

    def vocabulary(self) -> tuple[Vocabulary, NDArray[np.int64]]:
        """The ids of all items in the order of their slots, and these slots.

        Ids are integers if all of them can be, and text as long as one of them cannot.
        """
        used = np.array([slot for slot, item in enumerate(self._ids) if item is not None], np.int64)
        ids = [self._ids[slot] for slot in used]
        if not self._texts and ids:
            return Vocabulary(np.array(ids, np.int64)), used
        return Vocabulary([one for one in ids if one is not None]), used

    def vocabulary_by_slot(self, size: int) -> Vocabulary:
        """A vocabulary of `size` codes, in which the code of an item is its slot; all others have no id."""
        ids, slots = self.vocabulary()
        return ids.take(slots[:0]).with_changes(slots, ids, np.setdiff1d(np.arange(size), slots), size)

    @property
    def has_text(self) -> bool:
        """Whether an id is no integer."""
        return self._texts > 0

    def state_dict(self, slots: NDArray[np.int64] | None = None) -> dict[str, NDArray[Any]]:
        """All slots as arrays, or only these."""
        chosen = range(self.num_slots) if slots is None else slots.tolist()
        ids = [self._ids[slot] for slot in chosen]
        names = [b"" if item is None else item.encode("utf-8", "surrogatepass") for item in ids]
        return {
            "ids": np.frombuffer(b"".join(names), np.uint8),
            "ends": np.cumsum([len(name) for name in names], dtype=np.int64),
            "used": np.array([item is not None for item in ids], np.bool_),
            "free": np.array(self._free, np.int64),
            "generations": np.array([self._generation[slot] for slot in chosen], np.int64),
        }

    def update(self, slots: NDArray[np.int64], state: Mapping[str, NDArray[Any]]) -> None:
        """Take over the slots of a `state_dict` of some slots."""
        missing = int(slots.max(initial=-1)) + 1 - self.num_slots
        self._ids += [None] * missing
        self._generation += [0] * missing
        generations = state["generations"].tolist()
        for slot, item, generation in zip(slots.tolist(), _read_ids(state), generations, strict=True):
            self._ids[slot], self._generation[slot] = item, generation
        self._free = state["free"].tolist()
        self._index_ids()

    @classmethod
    def from_vocabulary(cls, items: Vocabulary) -> StreamCatalogue:
        """A catalogue in which the slot of an item is its code. Codes without an id are free slots."""
        catalogue, gone = cls(), set(items.removed.tolist())
        for slot, item in enumerate(items.ids(range(len(items)))):
            catalogue._ids.append(None if slot in gone else str(item))
        catalogue._generation = [0] * len(items)
        catalogue._index_ids()
        catalogue._free = sorted(gone)
        return catalogue

    def _index_ids(self) -> None:
        self._slot_of = {item: slot for slot, item in enumerate(self._ids) if item is not None}
        self._texts = sum(not _is_integer(item) for item in self._slot_of)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, NDArray[Any]]) -> StreamCatalogue:
        """The inverse of `state_dict`."""
        catalogue = cls()
        catalogue.update(np.arange(len(state["used"])), state)
        return catalogue


def _read_ids(state: Mapping[str, NDArray[Any]]) -> list[str | None]:
    text, start, ids = state["ids"].tobytes(), 0, []
    for end, used in zip(state["ends"].tolist(), state["used"].tolist(), strict=True):
        ids.append(text[start:end].decode("utf-8", "surrogatepass") if used else None)
        start = end
    return ids


def _is_integer(text: str) -> bool:
    """Whether a text is how an int64 is written."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 19:
        return False
    return str(int(text)) == text and -(2**63) <= int(text) < 2**63
