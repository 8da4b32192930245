"""Which answers of an approximate search are too short: fewer than n items where more are eligible."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pathdex.data.vocabulary import UNKNOWN
from pathdex.retrieval.filters import Filters
from pathdex.retrieval.ranking import Ranking


def short_rows(ranking: Ranking, filters: Filters, num_items: int) -> NDArray[np.int64]:
    """The queries whose answer lacks items that their filters would let through."""
    found = (ranking.items != UNKNOWN).sum(axis=1)
    lacking = np.flatnonzero(found < min(ranking.items.shape[1], num_items))
    # Only where items are missing is the whole catalogue looked at.
    eligible = [int(filters.eligible(int(row), num_items).sum()) for row in lacking]
    short: NDArray[np.int64] = lacking[found[lacking] < np.minimum(eligible, ranking.items.shape[1])]
    return short


def replace_rows(ranking: Ranking, rows: NDArray[np.int64], better: Ranking) -> Ranking:
    """The ranking with some of its rows answered anew."""
    items, scores, candidates = ranking.items.copy(), ranking.scores.copy(), ranking.candidates.copy()
    items[rows], scores[rows], candidates[rows] = better.items, better.scores, better.candidates
    return Ranking(items, scores, candidates)
