"""Interactions as one sequence of item codes per user: the input of training, evaluation and baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged, take_slices
from pathdex.data.reading import Reading
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError, Problem
from pathdex.storage.scratch import BLOCK, blocks


@dataclass(frozen=True, eq=False)
class Interactions:
    """Every user's items, oldest first; ties in time keep source order; repeats are kept."""

    sequences: Ragged
    """One row of item codes per user."""
    users: Vocabulary
    """The id of each row."""
    items: Vocabulary
    """The whole catalogue, including items that occur in no sequence here."""
    times: NDArray[np.float64] | None = None
    """The time of each entry of `sequences.values`; None if the source has no time."""
    ordered: bool = True
    """False if the order within a sequence has no meaning (a sparse matrix)."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """Counts from reading: `duplicate_rows`, `dropped_low_rating`, `dropped_short_users`, ..."""
    reading: Reading | None = None
    """How the source was read, with the columns that were taken."""

    @property
    def num_users(self) -> int:
        return len(self.sequences)

    @property
    def num_items(self) -> int:
        return len(self.items)

    @property
    def num_interactions(self) -> int:
        return len(self.sequences.values)

    def __repr__(self) -> str:
        sizes = f"{self.num_users:,} users, {self.num_items:,} items, {self.num_interactions:,} interactions"
        return f"Interactions({sizes}{'' if self.ordered else ', no order'})"

    def item_counts(self) -> NDArray[np.int64]:
        """N_v: how often each item of the catalogue occurs."""
        counts = np.zeros(self.num_items, np.int64)
        for part in blocks(self.num_interactions, max(BLOCK, self.num_items)):
            counts += np.bincount(self.sequences.values[part], minlength=self.num_items)
        return counts

    def shuffled_if_unordered(self, seed: int) -> Interactions:
        """The same data if it has an order; otherwise every sequence in random order.

        A matrix lists items by column, which would look like an order to a model of sequences.
        """
        if self.ordered:
            return self
        owner = np.repeat(np.arange(self.num_users), self.sequences.lengths)
        # Sorting random numbers within each row shuffles the row.
        order = np.lexsort((np.random.default_rng(seed).random(len(owner)), owner))
        times = None if self.times is None else self.times[order]
        return replace(self, sequences=Ragged(self.sequences.values[order], self.sequences.offsets), times=times)

    def take(self, rows: NDArray[np.integer], lengths: NDArray[np.int64] | None = None) -> Interactions:
        """The given users, over the same catalogue; with `lengths`, the first `lengths[i]` items of `rows[i]`."""
        starts, lengths = (
            self.sequences.offsets[:-1][rows],
            self.sequences.lengths[rows] if lengths is None else lengths,
        )
        times = None if self.times is None else take_slices(self.times, starts, lengths)[0]
        sequences = Ragged(*take_slices(self.sequences.values, starts, lengths))
        return replace(self, sequences=sequences, users=self.users.take(rows), times=times)

    def user_range(self, begin: int, end: int) -> Interactions:
        """The users with the codes `begin` to `end - 1`, over the same catalogue. Items and times are not copied."""
        offsets = self.sequences.offsets[begin : end + 1]
        part = slice(offsets[0], offsets[-1])
        times = None if self.times is None else self.times[part]
        sequences = Ragged(self.sequences.values[part], offsets - offsets[0])
        return replace(self, sequences=sequences, users=self.users.take(np.arange(begin, end)), times=times)


def popularity_order(item_counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Item codes by descending count, ties by ascending code."""
    return np.argsort(-item_counts.astype(np.int64), kind="stable")


def check_interactions(data: object) -> None:
    """Raise `DataError` unless `data` is what `read` returns."""
    if not isinstance(data, Interactions):
        rule = f"must be interactions, not {type(data).__name__}"
        raise DataError(Problem(rule, "data", data, "read it first: pathdex.read(source, user=..., item=...)"))
