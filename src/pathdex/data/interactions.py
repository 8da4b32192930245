"""The one form in which training, evaluation and baselines see data: a sequence of item codes per user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Interactions:
    """Every user's items, oldest first; ties in time keep the order of the file; repeats are kept."""

    sequences: Ragged
    """One row of item codes per user."""
    users: Vocabulary
    """The id of each row."""
    items: Vocabulary
    """The ids behind the item codes: the whole catalogue, also items that occur in no row here."""
    times: NDArray[np.float64] | None = None
    """Seconds (or any order) beside `sequences.values`; None where the source has no time."""
    ordered: bool = True
    """False where the order of a row means nothing (a CSR matrix)."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """What reading found and did: `duplicate_rows`, `dropped_low_rating`, `dropped_short_users`, ..."""

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
        order = "" if self.ordered else ", no order"
        return (
            f"Interactions({self.num_users:,} users, {self.num_items:,} items, "
            f"{self.num_interactions:,} interactions{order})"
        )

    def item_counts(self) -> NDArray[np.int64]:
        """N_v: how often each item of the catalogue occurs."""
        return np.bincount(self.sequences.values, minlength=self.num_items)

    def take(self, rows: NDArray[np.integer]) -> Interactions:
        """The given users only, over the same catalogue."""
        times = None if self.times is None else self.times[self.sequences.positions(rows)]
        return Interactions(
            self.sequences.take(rows), self.users.take(rows), self.items, times, self.ordered, self.notes
        )
