"""Filters of a batch of queries, in item codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.kernels.types import Ints, Mask


@dataclass(frozen=True)
class Filters:
    """The items that each query may return. An item must pass all three filters."""

    exclude: Ragged | None = None
    """One row of excluded items per query."""
    allow: Sequence[Ints | None] | None = None
    """One sorted array of distinct items per query, the only ones allowed; None allows all."""
    where: Sequence[Mask | None] | None = None
    """One mask over the catalogue per query; None allows all."""

    def eligible(self, query: int, num_items: int) -> Mask:
        """The mask of the items that one query may return."""
        mask = self.allowed(query, num_items)
        if self.exclude is not None:
            mask[self.exclude[query]] = False
        return mask

    def allowed(self, query: int, num_items: int) -> Mask:
        """The mask of `allow` and `where` alone."""
        allow, where = self.allow_of(query), self.where_of(query)
        mask = np.full(num_items, allow is None)
        if allow is not None:
            mask[allow] = True
        if where is not None:
            mask &= where
        return mask

    def allow_of(self, query: int) -> Ints | None:
        return None if self.allow is None else self.allow[query]

    def where_of(self, query: int) -> Mask | None:
        return None if self.where is None else self.where[query]

    def take(self, rows: NDArray[np.integer]) -> Filters:
        """The filters of the given queries, in the given order."""
        return Filters(
            None if self.exclude is None else self.exclude.take(rows),
            None if self.allow is None else [self.allow[row] for row in rows],
            None if self.where is None else [self.where[row] for row in rows],
        )


NO_FILTERS = Filters()
