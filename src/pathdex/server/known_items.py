"""What a router remembers of the items in histories, so that it need not ask the shards for them again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pathdex.data.vocabulary import Id
from pathdex.kernels.types import Floats, Ints
from pathdex.recommenders.whole_model import KnownHistory

UNKNOWN_ITEM = -1


@dataclass(frozen=True, slots=True)
class KnownItem:
    """An item of the model, or, with the code -1, an id that no shard has."""

    code: int
    """In the whole model."""
    row: bytes | None = None
    """float32: its input vector; None if it was only seen where the encoder does not read it."""
    near: bytes = b""
    """int32: its neighbours, in codes of the whole model."""
    similarities: bytes = b""
    """float32"""


class KnownItems:
    """The items that were used last, at most `most`. Those of one version of a model. Used in one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[Id, KnownItem] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def find(self, history: Sequence[Id], length: int) -> list[KnownItem] | None:
        """All items of a history; None unless all are remembered, with the vectors of the latest `length`."""
        found = [self._items.get(id) for id in history]
        items = [one for one in found if one is not None]
        if len(items) < len(history):
            return None
        known = [one for one in items if one.code != UNKNOWN_ITEM]
        if any(one.row is None for one in known[-length:]):
            return None
        for id in history:
            self._items.move_to_end(id)
        return items

    def remember(self, history: Sequence[Id], codes: Ints, known: KnownHistory) -> None:
        """Remember the items of a history, given by their codes (-1: unknown)."""
        if not self._most:
            return
        places = {code: place for place, code in enumerate(known.distinct.tolist())}
        ends = np.cumsum(known.lengths)
        for id, code in zip(history, codes.tolist(), strict=True):
            place = places.get(code)
            old = self._items.get(id)
            if old is None or (old.row is None and place is not None):
                item = KnownItem(code)
                if place is not None:
                    span = slice(ends[place] - known.lengths[place], ends[place])
                    near, similarities = known.near[span], known.similarities[span]
                    item = KnownItem(code, known.rows[place].tobytes(), near.tobytes(), similarities.tobytes())
                self._items[id] = item
            self._items.move_to_end(id)
        while len(self._items) > self._most:
            self._items.popitem(last=False)


def history_of(items: Sequence[KnownItem], length: int, dim: int) -> KnownHistory:
    """A history as the shards would report it, from items that `find` found."""
    known = [one for one in items if one.code != UNKNOWN_ITEM]
    latest = {one.code: one for one in known[-length:]}
    order = sorted(latest)
    distinct = [latest[code] for code in order]
    near = [np.frombuffer(one.near, np.int32) for one in distinct]
    rows: Floats = np.frombuffer(b"".join(one.row or b"" for one in distinct), np.float32).reshape(-1, dim)
    return KnownHistory(
        np.array([one.code for one in known], np.int64),
        np.array(order, np.int64),
        rows,
        np.array([len(one) for one in near], np.int64),
        np.concatenate(near) if near else np.empty(0, np.int32),
        np.frombuffer(b"".join(one.similarities for one in distinct), np.float32),
    )
