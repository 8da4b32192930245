"""Replay: the kept histories of recent users, learned from again beside new events."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.training.windows import START, Batch, draw_readers


class RecentUsers:
    """The users of the last `events` events, from which replayed histories are drawn."""

    def __init__(self, events: int) -> None:
        self._users: deque[str] = deque(maxlen=events)

    def __len__(self) -> int:
        return len(self._users)

    def append(self, user: str) -> None:
        self._users.append(user)

    def distinct(self) -> list[str]:
        """The users, each once."""
        return list(dict.fromkeys(self._users))

    def draw(
        self, samples: int, length: int, history_of: Callable[[str], list[int]], generator: np.random.Generator
    ) -> list[list[int]]:
        """Histories of distinct random users that give about so many samples (`replay_batch`), by number of events."""
        found: dict[str, list[int]] = {}
        while self._users and samples > 0:
            before = len(found)
            for place in generator.integers(0, len(self._users), samples).tolist():
                user = self._users[place]
                if user in found or samples <= 0:
                    continue
                history = history_of(user)
                if len(history) > 1:
                    found[user] = history
                    samples -= len(history) - first_target(history, length)
            if len(found) == before:
                break
        return list(found.values())

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        names = [user.encode("utf-8", "surrogatepass") for user in self._users]
        return {
            "names": np.frombuffer(b"".join(names), np.uint8),
            "ends": np.cumsum([len(name) for name in names], dtype=np.int64),
        }

    def load_state_dict(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore what `state_dict` returned."""
        self._users.clear()
        text, start = arrays["names"].tobytes(), 0
        for end in arrays["ends"].tolist():
            self._users.append(text[start:end].decode("utf-8", "surrogatepass"))
            start = end


def draw_window(tokens: Sequence[int], length: int, keep: int, generator: np.random.Generator) -> Sequence[int]:
    """At most `length` items of a history of which `keep` are kept: as likely these items as others.

    Ends are half a length apart, the first at random, as those of batch training. A history of `keep` items may have
    lost its start, so a window of it is full.
    """
    if len(tokens) <= length:
        return tokens
    stride = (length + 1) // 2
    shift = int(generator.integers(stride))
    end = stride * (1 + int(generator.integers(-(-(len(tokens) + shift) // stride)))) - shift
    end = min(max(end, length if len(tokens) >= keep else 1), len(tokens))
    return tokens[max(0, end - length) : end]


def first_target(history: Sequence[int], length: int) -> int:
    """The first place of a history that is a target: a history that may have lost its start is first read to half."""
    return length // 2 if len(history) >= length else 0


def replay_batch(
    histories: Sequence[Sequence[int]], length: int, next_items: int, generator: np.random.Generator
) -> Batch:
    """The items of histories as samples, each predicted from the items before it.

    With `next_items` above 1, the history ends up to so many items earlier, near ones more often. A history of `length`
    items may be the end of a longer one: it has no start token.
    """
    width = max(len(history) for history in histories)
    inputs = np.full((len(histories), width), START, np.int64)
    targets, window, time, earliest = [], [], [], []
    for row, history in enumerate(histories):
        first = first_target(history, length)
        token = int(len(history) < length)
        inputs[row, token : token + len(history) - 1] = history[:-1]
        places = np.arange(first, len(history))
        targets.append(np.asarray(history, np.int64)[places])
        time.append(places + token - 1)
        window.append(np.full(len(places), row))
        earliest.append(np.full(len(places), first + token - 1))
    values = np.concatenate(targets)
    batch = Batch(
        inputs, np.concatenate(window), np.concatenate(time), np.arange(len(values)), values, np.concatenate(earliest)
    )
    if next_items == 1:
        return batch
    rows = Ragged.from_rows([one.astype(np.int32) for one in targets])
    return batch.read_earlier(draw_readers(rows, next_items, generator))
