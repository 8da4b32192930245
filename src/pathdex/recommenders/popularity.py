"""The most frequent items, for everyone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.data.interactions import Interactions, popularity_order
from pathdex.data.item_details import ItemDetails
from pathdex.data.ragged import Ragged
from pathdex.data.source_table import Source
from pathdex.errors import NotFittedError
from pathdex.recommenders.base import EstimatorState, Recommender
from pathdex.recommenders.bundle_checks import MAX_COUNT, check_names
from pathdex.recommenders.fit_inputs import fit_inputs
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, fill_in_order, no_ranking
from pathdex.storage.array_spec import index_spec
from pathdex.storage.bundle_rules import BundleRules
from pathdex.training.callbacks import Callback, following


class Popularity(Recommender):
    """Ranks items by their count N_v in the training data, which is also the score."""

    name = "popularity"

    def __init__(self) -> None:
        self._counts: NDArray[np.float32] | None = None
        self._order: NDArray[np.int64] | None = None

    def fit(
        self,
        data: Interactions | Source,
        *,
        items: ItemDetails | Source | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Self:
        data, items = fit_inputs(data, items)
        with following(callbacks):
            self._learn_from(data, items)
            self._learn(data.item_counts())
        return self

    def get_params(self) -> dict[str, Any]:
        return {}

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        self._check_query(n, options)
        if self._counts is None or self._order is None:
            raise NotFittedError(self)
        return fill_in_order(no_ranking(len(histories), n), self._order, self._counts, filters)

    def _learn(self, counts: NDArray[np.integer]) -> None:
        self._order = popularity_order(counts)
        self._counts = counts.astype(np.float32)

    def get_state(self) -> EstimatorState:
        if self._counts is None:
            raise NotFittedError(self)
        return EstimatorState(arrays={"counts": self._counts.astype(np.int64)})

    @classmethod
    def bundle_rules(cls, settings: Mapping[str, Any], num_items: int) -> BundleRules:
        check_names("settings", settings, ())
        return BundleRules({"counts": index_spec(num_items, below=MAX_COUNT, dtype="int64")})

    def set_state(self, state: EstimatorState) -> None:
        self._learn(np.array(state.arrays["counts"]))
