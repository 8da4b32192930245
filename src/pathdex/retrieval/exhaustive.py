"""Exhaustive search by inner product: every item is scored, one block of the catalogue at a time."""

from __future__ import annotations

from pathdex.kernels.types import Floats
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, TopN, join_rankings, row_blocks

QUERY_BLOCK = 256
ITEM_BLOCK = 65_536
"""256 x 65,536 float32 scores take 64 MB at a time, for any catalogue."""


def rank_exhaustively(users: Floats, vectors: Floats, bias: Floats, n: int, filters: Filters = NO_FILTERS) -> Ranking:
    """The best `min(n, eligible)` items by x . y_v + b_v: users (query, dim), vectors (item, dim), bias (item,)."""
    parts = []
    for rows in row_blocks(len(users), QUERY_BLOCK):
        best = TopN(len(rows), len(vectors), n, filters.take(rows))
        for first in range(0, len(vectors), ITEM_BLOCK):
            block = slice(first, first + ITEM_BLOCK)
            scores = users[rows] @ vectors[block].T
            scores += bias[block]
            best.add(scores, first)
        parts.append(best.ranking())
    return join_rankings(parts)
