"""A recommender with known answers, and queries over ten items."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathdex.data.ragged import Ragged
from pathdex.data.splits import Queries
from pathdex.data.vocabulary import Vocabulary
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, TopN, top_n_of
from tests.fakes import FakeRecommender

NUM_ITEMS = 10


class Countdown(FakeRecommender):
    """Brute force and an index in one: item v scores -v; the index finds the first `reach` items.

    `bonus` is added to the final score, as a path probability would be.
    """

    name = "countdown"

    def __init__(self, reach: int = NUM_ITEMS, bonus: dict[int, float] | None = None) -> None:
        self.reach = reach
        self.bonus = bonus or {}
        self._items = Vocabulary(np.arange(NUM_ITEMS))
        self.calls: list[tuple[int, bool, dict[str, Any]]] = []

    def candidate_items(
        self, histories: Ragged, filters: Filters = NO_FILTERS, *, n: int = 1, **options: Any
    ) -> Ragged:
        reach = options.get("candidates", self.reach)
        masks = (filters.eligible(query, NUM_ITEMS) for query in range(len(histories)))
        return Ragged.from_rows(np.flatnonzero(mask)[:reach] for mask in masks)

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        self.calls.append((len(histories), filters.exclude is not None, options))
        if not options and self.reach == NUM_ITEMS:
            best = TopN(len(histories), NUM_ITEMS, n, filters)
            best.add(np.tile(-np.arange(NUM_ITEMS, dtype=np.float32), (len(histories), 1)))
            return best.ranking()
        found = self.candidate_items(histories, filters, n=n, **options)
        scores = [np.float32(self.bonus.get(int(item), 0.0) - item) for item in found.values]
        return top_n_of(found, np.array(scores, np.float32), NUM_ITEMS, n, filters)

    def rank_candidates(self, histories: Ragged, candidates: Ragged, n: int) -> Ranking:
        return top_n_of(candidates, -candidates.values.astype(np.float32), NUM_ITEMS, n)


def make_queries(history: list[list[int]], truth: list[list[int]]) -> Queries:
    return Queries(Vocabulary(np.arange(len(history))), Ragged.from_rows(history), Ragged.from_rows(truth))
