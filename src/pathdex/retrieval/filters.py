"""Which items a query may get, in codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged

Codes: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Filters:
    """Which items may be recommended to each query, in codes. An item must pass all three."""

    exclude: Ragged | None = None
    """One row of forbidden items per query."""
    allow: Sequence[Codes | None] | None = None
    """One array per query, sorted and distinct: the only items that may be recommended; None: no limit."""
    where: Sequence[Mask | None] | None = None
    """One mask over the catalogue per query; None: no condition."""

    def eligible(self, query: int, num_items: int) -> Mask:
        """The mask over the catalogue that this filter means for one query."""
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

    def allow_of(self, query: int) -> Codes | None:
        return None if self.allow is None else self.allow[query]

    def where_of(self, query: int) -> Mask | None:
        return None if self.where is None else self.where[query]

    def take(self, rows: NDArray[np.integer]) -> Filters:
        """The filters of some of the queries."""
        return Filters(
            None if self.exclude is None else self.exclude.take(rows),
            None if self.allow is None else [self.allow[row] for row in rows],
            None if self.where is None else [self.where[row] for row in rows],
        )


NO_FILTERS = Filters()
