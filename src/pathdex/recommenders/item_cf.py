"""Item-based collaborative filtering by cosine similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from typing_extensions import Self

from pathdex.data.interactions import Interactions, popularity_order
from pathdex.data.item_details import ItemDetails
from pathdex.data.matrix import interaction_matrix
from pathdex.data.ragged import Ragged
from pathdex.data.source_table import Source
from pathdex.errors import ConfigError, NotFittedError, Problem, did_you_mean
from pathdex.index.neighbours import nearest_items, rows_of
from pathdex.kernels.neighbours import Neighbours
from pathdex.parameters import LARGEST, count_problems
from pathdex.recommenders.base import EstimatorState, Recommender
from pathdex.recommenders.bundle_checks import check_names
from pathdex.recommenders.fit_inputs import fit_inputs
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, fill_in_order, join_rankings, row_blocks, top_n_of
from pathdex.storage.array_spec import LIMIT, ArraySpec, index_spec, offsets_spec, order_spec
from pathdex.storage.bundle_rules import BundleRules
from pathdex.training.callbacks import Callback, following

WEIGHTS = ("binary", "count")
QUERY_BLOCK = 512


class ItemCF(Recommender):
    """Scores an item by the sum of its similarities to the items of the history.

    sim(i, j) = x_i . x_j / (|x_i| |x_j| + shrinkage), where x_i holds the weight of item i for every user: 1 for users
    who have it (`binary`), or how often they have it (`count`; repeats in a history then count as well). Every item
    keeps its `neighbours` most similar items, ties by ascending code. If a history has fewer than n neighbours, the
    answer is filled up with the most popular items, with score 0. `shrinkage` lowers the similarity of rare items,
    which is high for few shared users; 10 to 50 suits sparse data.
    """

    name = "item-cf"

    def __init__(self, *, neighbours: int = 500, weights: str = "binary", shrinkage: float = 0.0) -> None:
        _check_settings(neighbours, weights, shrinkage)
        self.neighbours = neighbours
        self.weights = weights
        self.shrinkage = shrinkage
        self._similarity: sparse.csr_array | None = None
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
            self._order = popularity_order(data.item_counts())
            self._adopt(nearest_items(self._matrix(data.sequences), self.neighbours, shrinkage=self.shrinkage))
        return self

    def fit_for(self, histories: Ragged, data: Interactions) -> Self:
        """`fit` with the lists of only those items that occur in some histories: all that ranking these needs."""
        self._learn_from(data)
        self._order = popularity_order(data.item_counts())
        wanted = np.unique(histories.values)
        found = nearest_items(self._matrix(data.sequences), self.neighbours, shrinkage=self.shrinkage, items=wanted)
        lengths = np.zeros(len(self.items), np.int64)
        lengths[wanted] = np.diff(found.offsets)
        self._adopt(found._replace(offsets=np.concatenate([[0], np.cumsum(lengths)])))
        return self

    def get_params(self) -> dict[str, Any]:
        return {"neighbours": self.neighbours, "weights": self.weights, "shrinkage": self.shrinkage}

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        self._check_query(n, options)
        blocks = row_blocks(len(histories), QUERY_BLOCK)
        return join_rankings([self._rank_block(histories.take(rows), n, filters.take(rows)) for rows in blocks])

    def _rank_block(self, histories: Ragged, n: int, filters: Filters) -> Ranking:
        if self._similarity is None or self._order is None:
            raise NotFittedError(self)
        scores = self._matrix(histories) @ self._similarity
        found = top_n_of(rows_of(scores), scores.data, len(self.items), n, filters)
        return fill_in_order(found, self._order, np.zeros(len(self.items), np.float32), filters)

    def _matrix(self, rows: Ragged) -> sparse.csr_array:
        """(row, item) weights."""
        return interaction_matrix(rows, len(self.items), binary=self.weights == "binary")

    def _adopt(self, found: Neighbours) -> None:
        items = len(found.offsets) - 1
        self._similarity = sparse.csr_array((found.similarities, found.items, found.offsets), shape=(items, items))

    def get_state(self) -> EstimatorState:
        if self._similarity is None or self._order is None:
            raise NotFittedError(self)
        neighbours = rows_of(self._similarity)
        arrays: dict[str, NDArray[Any]] = {
            "neighbours": neighbours.values,
            "offsets": neighbours.offsets,
            "similarities": self._similarity.data,
            "order": self._order,
        }
        return EstimatorState(self.get_params(), arrays)

    @classmethod
    def bundle_rules(cls, settings: Mapping[str, Any], num_items: int) -> BundleRules:
        check_names("settings", settings, ("neighbours", "weights", "shrinkage"))
        _check_settings(**settings)
        return BundleRules(
            {
                "offsets": offsets_spec(num_items + 1, "entries"),
                "neighbours": index_spec("entries", below=num_items),
                # Items that fill up an answer have score 0, so none may be below.
                "similarities": ArraySpec(dtype="float32", shape=("entries",), low=0.0, high=LIMIT),
                "order": order_spec(num_items),
            }
        )

    def set_state(self, state: EstimatorState) -> None:
        self.neighbours = state.settings["neighbours"]
        self.weights = state.settings["weights"]
        self.shrinkage = state.settings["shrinkage"]
        arrays = state.arrays
        self._adopt(Neighbours(arrays["offsets"], arrays["neighbours"], arrays["similarities"]))
        self._order = np.array(arrays["order"])


def _check_settings(neighbours: int, weights: str, shrinkage: float) -> None:
    problems = count_problems("neighbours", neighbours, high=LARGEST, remedy="500 is the default")
    if weights not in WEIGHTS:
        rule = f"must be one of {', '.join(WEIGHTS)}{did_you_mean(weights, WEIGHTS)}"
        problems.append(Problem(rule, "weights", weights))
    if isinstance(shrinkage, bool) or not isinstance(shrinkage, int | float) or not 0 <= shrinkage <= LARGEST:
        rule = "must be a finite number of at least 0"
        problems.append(Problem(rule, "shrinkage", shrinkage, "0 is plain cosine"))
    if problems:
        raise ConfigError(problems)
