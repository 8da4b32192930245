"""Replay: the kept histories of recent users, learned from again beside new events."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.training.windows import START, Batch, draw_readers

KEEP = "keep"
"""The array of a checkpoint that holds how many users are kept."""


class RecentUsers:
    """The users of the last `events` events, from which replayed histories are drawn."""

    def __init__(self, events: int) -> None:
        self._keep = events
        self._users: list[str] = []
        self._oldest = 0
        """Where the oldest of them is, once there are so many; the next one replaces it."""
        self._uncommitted = 0
        """Events since the last checkpoint."""

    def __len__(self) -> int:
        return len(self._users)

    def append(self, user: str) -> None:
        user = sys.intern(user)  # A user's events share one text.
        if len(self._users) < self._keep:
            self._users.append(user)
        else:
            self._users[self._oldest] = user
            self._oldest = (self._oldest + 1) % self._keep
        self._uncommitted = min(self._uncommitted + 1, self._keep)

    def latest(self, most: int) -> list[str]:
        """At most so many different users: those with the latest events, in the order of these."""
        found: dict[str, None] = {}
        for user in chain(reversed(self._users[: self._oldest]), reversed(self._users[self._oldest :])):
            found[user] = None
            if len(found) == most:
                break
        return list(reversed(found))

    def draw(
        self, samples: int, length: int, history_of: Callable[[str], list[int]], generator: np.random.Generator
    ) -> list[list[int]]:
        """Histories of distinct random users that give about so many samples (`replay_batch`), by number of events."""
        found: dict[str, list[int]] = {}
        while self._users and samples > 0:
            before = len(found)
            for place in generator.integers(0, len(self._users), samples).tolist():
                user = self._users[(self._oldest + place) % len(self._users)]
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
        return self._packed(len(self._users))

    def changes_dict(self) -> dict[str, NDArray[Any]]:
        """The users since the last commit; `merge_recent` adds them to earlier ones."""
        return self._packed(self._uncommitted)

    def committed(self) -> None:
        """A checkpoint with `state_dict` or `changes_dict` is on disk."""
        self._uncommitted = 0

    def _packed(self, last: int) -> dict[str, NDArray[Any]]:
        first, size = len(self._users) - last, max(len(self._users), 1)
        users = [self._users[(self._oldest + place) % size] for place in range(first, first + last)]
        names = [user.encode("utf-8", "surrogatepass") for user in users]
        return {
            "names": np.frombuffer(b"".join(names), np.uint8),
            "ends": np.cumsum([len(name) for name in names], dtype=np.int64),
            KEEP: np.array([self._keep]),
        }

    def load_state_dict(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state_dict` returned."""
        self._users, self._oldest, self._uncommitted = [], 0, 0
        text, start = arrays["names"].tobytes(), 0
        for end in arrays["ends"].tolist():
            self.append(text[start:end].decode("utf-8", "surrogatepass"))
            start = end
        self.committed()


def merge_recent(before: Mapping[str, NDArray[Any]], change: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    """The state of `RecentUsers` after a change; before and after are as `state_dict` returns them."""
    if KEEP not in change:  # Checkpoints of earlier versions hold all users.
        return change
    names, ends = before["names"], before["ends"]
    last = ends[-1] if len(ends) else 0
    names, ends = np.concatenate([names, change["names"]]), np.concatenate([ends, change["ends"] + last])
    surplus = len(ends) - int(change[KEEP][0])
    if surplus > 0:
        cut = ends[surplus - 1]
        names, ends = names[cut:], ends[surplus:] - cut
    return {"names": names, "ends": ends, KEEP: change[KEEP]}


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
