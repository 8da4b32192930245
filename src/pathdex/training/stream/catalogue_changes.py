"""Items that records of a stream add and remove, in order with its events."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from pathdex.data.item_changes import AddItem, ItemChange, features
from pathdex.data.vocabulary import UNKNOWN, Id
from pathdex.training.stream.text_arrays import pack_texts, unpack_texts

if TYPE_CHECKING:
    from pathdex.training.stream.state import StreamState

REMEMBERED = 100_000
"""Removed items that are remembered; those that were removed first are forgotten first."""

Sample = tuple[list[int], int]
"""The slots of a history, and that of the item after it."""


class CatalogueChanges:
    """Applies item changes, and remembers which items were removed.

    An event of a removed item does not bring it back, since events are often on their way while an item is removed.
    Adding it does.
    """

    def __init__(self) -> None:
        self._removed: OrderedDict[str, None] = OrderedDict()

    def blocks(self, item: Id) -> bool:
        """Whether events of an item are ignored, since it was removed."""
        return bool(self._removed) and str(item) in self._removed

    def block(self, item: Id) -> None:
        """Ignore events of an item from now on."""
        self._removed.pop(str(item), None)
        self._removed[str(item)] = None
        if len(self._removed) > REMEMBERED:
            self._removed.popitem(last=False)

    def unblock(self, item: Id) -> None:
        """Take events of an item again."""
        self._removed.pop(str(item), None)

    def apply(self, state: StreamState, change: ItemChange, samples: Sequence[Sample]) -> list[Sample]:
        """Change the catalogue; returns the samples that are still to be learned from.

        Adding a known item only notes its attributes, and removing an unknown one does nothing. Of a removed item,
        nothing is left in the samples: another item may be in its slot by the time they are learned from.
        """
        state.counters.item_changes += 1
        if isinstance(change, AddItem):
            self._add(state, change)
            return list(samples)
        self.block(change.item)
        removed = state.remove_items([change.item])
        if not removed:
            state.counters.unknown_removals += 1
            return list(samples)
        [slot] = removed
        return [([one for one in before if one != slot], target) for before, target in samples if target != slot]

    def state_dict(self) -> dict[str, NDArray[Any]]:
        return pack_texts(self._removed)

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state_dict` returned; a checkpoint of an earlier release has nothing."""
        self._removed = OrderedDict.fromkeys(unpack_texts(state) if state else [])

    def _add(self, state: StreamState, change: AddItem) -> None:
        self.unblock(change.item)
        values = features(change.attributes)
        if change.item in state.catalogue:
            state.describe(state.catalogue.slot(change.item), values)
            return
        like = [slot for one in change.like if (slot := state.catalogue.slot(one)) != UNKNOWN]
        state.add_item(change.item, like, values, named=bool(like))
