"""Histories to user vectors, one history at a time, with a state that the next item can continue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.ragged import Ragged
from pathdex.kernels.encoders import ENCODERS, Encoder, advance_state, encode_history
from pathdex.kernels.layout import as_readonly
from pathdex.kernels.types import Floats, Int32s


@dataclass(frozen=True)
class UserState:
    """An encoded history, ready to continue with the next item."""

    history: Int32s
    vector: Floats
    """The user vector x."""
    encoder_state: Floats
    """(row, dim), see `pathdex.kernels.encoders`."""
    inputs_read: int
    """The number of inputs that the encoder has read."""


class HistoryEncoder:
    """Encodes histories with a compiled encoder, or with torch if the encoder has no compiled version."""

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, NDArray[Any]],
        table: Floats,
        encode_with_torch: Callable[[Ragged], Floats],
    ) -> None:
        """`weights` are the network's by name; `table` is its item table."""
        self.history_length = config.history_length
        self.table, self.start = table, as_readonly(weights["start"])
        compiled = ENCODERS.get(config.encoder)
        self.compiled: Encoder | None = None if compiled is None else compiled.pack(weights_under("encoder.", weights))
        self._encode_with_torch = encode_with_torch

    def encode(self, history: NDArray[np.integer]) -> UserState:
        """The state after a history; the encoder reads its latest `history_length` items."""
        whole: Int32s = as_readonly(history, np.int32)
        if self.compiled is None:
            latest = whole[-self.history_length :]
            vector = self._encode_with_torch(Ragged(latest, np.array([0, len(latest)])))[0]
            return UserState(whole, vector, np.empty((0, len(vector)), np.float32), len(latest))
        codes = as_readonly(whole, np.int32)
        state, vector, count = encode_history(self.compiled, self.table, self.start, codes, self.history_length)
        return UserState(whole, vector, state, count)

    def advance(self, state: UserState, item: int) -> UserState:
        """The state after one more item, equal to `encode` of the longer history.

        The encoder reads only the new item until the history reaches `history_length`. From then on every new item
        drops the oldest one, and the latest items are read again.
        """
        history = as_readonly(np.append(state.history, item), np.int32)
        if self.compiled is None or len(history) >= self.history_length:
            return self.encode(history)
        after, vector = advance_state(self.compiled, self.table, state.encoder_state, state.inputs_read, item)
        return UserState(history, vector, after, state.inputs_read + 1)


def weights_under(prefix: str, weights: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The weights whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
