"""Item-based collaborative filtering: items that the same users have, by cosine similarity."""

# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from typing_extensions import Self

from pathdex.baselines.matrix import interaction_matrix
from pathdex.baselines.popularity import popularity_order
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN
from pathdex.errors import ConfigError, NotFittedError
from pathdex.retrieval.contract import NO_FILTERS, Filters, Ranking, Recommender, State
from pathdex.retrieval.ranking import fill_in_order, join_rankings, no_options, offer, row_blocks, top_n_of

T = TypeVar("T", bound=np.generic)
WEIGHTS = ("binary", "count")
QUERY_BLOCK = 512
ITEMS_PER_BLOCK = 4096
PAIRS_PER_BLOCK = 10_000_000
"""A thread of `fit` works out one block at a time, whichever of the two bounds is reached first."""


class ItemCF(Recommender):
    """Scores an item by the sum of its similarities to the items of the history.

    sim(i, j) = x_i . x_j / (|x_i| |x_j| + shrinkage), where x_i holds item i's weight for every user: 1 for users that
    have it (`binary`), or how often they have it (`count`; a history's repeats then count as well). Every item keeps
    its `neighbours` most similar items, equal similarities by rising code. Where the neighbours of a history are fewer
    than n, the answer is completed in order of popularity with items of score 0; an empty history gets only these.
    `shrinkage` lowers the similarity of rare items, which few shared users make large; 10 to 50 suits sparse data.
    """

    name = "item-cf"

    def __init__(self, *, neighbours: int = 500, weights: str = "binary", shrinkage: float = 0.0) -> None:
        _check_settings(neighbours, weights, shrinkage)
        self.neighbours = neighbours
        self.weights = weights
        self.shrinkage = shrinkage
        self._similarity: sparse.csr_array | None = None
        self._order: NDArray[np.int64] | None = None

    def fit(self, data: Interactions) -> Self:
        self._items = data.items
        self._order = popularity_order(data.item_counts())
        self._similarity = self._nearest(self._matrix(data.sequences))
        return self

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        no_options(self, options)
        blocks = row_blocks(len(histories), QUERY_BLOCK)
        return join_rankings([self._rank_block(histories.take(rows), n, filters.take(rows)) for rows in blocks])

    def _rank_block(self, histories: Ragged, n: int, filters: Filters) -> Ranking:
        if self._similarity is None or self._order is None:
            raise NotFittedError(self)
        scores = self._matrix(histories) @ self._similarity
        found = top_n_of(_as_ragged(scores), scores.data, len(self.items), n, filters)
        return fill_in_order(found, self._order, np.zeros(len(self.items), np.float32), filters)

    def _matrix(self, rows: Ragged) -> sparse.csr_array:
        """(row, item) weights."""
        return interaction_matrix(rows, len(self.items), binary=self.weights == "binary")

    def _nearest(self, matrix: sparse.csr_array) -> sparse.csr_array:
        """(item, item) similarities of every item's nearest neighbours."""
        transposed = matrix.T.tocsr()
        norms = np.sqrt(transposed.power(2).sum(axis=1)).astype(np.float32)
        users_of, items_of = _Rows.of(transposed), _Rows.of(matrix)

        def nearest(block: range) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
            items = np.full((len(block), self.neighbours), UNKNOWN, np.int32)
            scores = np.zeros((len(block), self.neighbours), np.float32)
            _nearest_neighbours(block.start, users_of, items_of, norms, float(self.shrinkage), items, scores)
            found = items != UNKNOWN
            return found.sum(axis=1), items[found], scores[found]

        lengths: list[NDArray[np.int64]] = []
        items: list[NDArray[np.int32]] = []
        scores: list[NDArray[np.float32]] = []
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for count, found, similarity in pool.map(nearest, _blocks(users_of, items_of)):
                lengths.append(count)
                items.append(found)
                scores.append(similarity)
        offsets = np.concatenate([[0], np.cumsum(_joined(lengths))])
        return self._similarities(Ragged(_joined(items), offsets), _joined(scores))

    def _similarities(self, neighbours: Ragged, scores: NDArray[np.float32]) -> sparse.csr_array:
        shape = (len(neighbours), len(neighbours))
        return sparse.csr_array((scores, neighbours.values, neighbours.offsets), shape=shape)

    def _state(self) -> State:
        if self._similarity is None or self._order is None:
            raise NotFittedError(self)
        settings = {"neighbours": self.neighbours, "weights": self.weights, "shrinkage": self.shrinkage}
        neighbours = _as_ragged(self._similarity)
        arrays: dict[str, NDArray[Any]] = {
            "neighbours": neighbours.values,
            "offsets": neighbours.offsets,
            "similarities": self._similarity.data,
            "order": self._order,
        }
        return State(settings, arrays)

    def _restore(self, state: State) -> None:
        self.neighbours = state.settings["neighbours"]
        self.weights = state.settings["weights"]
        self.shrinkage = state.settings["shrinkage"]
        neighbours = Ragged(state.arrays["neighbours"], state.arrays["offsets"])
        self._similarity = self._similarities(neighbours, state.arrays["similarities"])
        self._order = np.array(state.arrays["order"])


def _as_ragged(matrix: sparse.csr_array) -> Ragged:
    return Ragged(matrix.indices.astype(np.int32, copy=False), matrix.indptr.astype(np.int64, copy=False))


def _joined(parts: list[NDArray[T]]) -> NDArray[T]:
    """All parts in one array. The list is emptied, since parts and whole together are what takes the most memory."""
    joined = np.concatenate(parts)
    parts.clear()
    return joined


class _Rows(NamedTuple):
    """A sparse matrix by rows, as the compiled loop reads it."""

    columns: NDArray[np.int32]
    offsets: NDArray[np.int64]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> _Rows:
        rows = _as_ragged(matrix)
        return cls(rows.values, rows.offsets, matrix.data)


def _blocks(users_of: _Rows, items_of: _Rows) -> list[range]:
    """Runs of items with about equal work, which is the number of pairs (item, item of the same user)."""
    companions = np.concatenate([[0], np.cumsum(np.diff(items_of.offsets)[users_of.columns])])[users_of.offsets]
    num_items = len(users_of.offsets) - 1
    blocks, start = [], 0
    while start < num_items:
        end = int(np.searchsorted(companions, companions[start] + PAIRS_PER_BLOCK, side="right")) - 1
        end = min(max(end, start + 1), start + ITEMS_PER_BLOCK, num_items)
        blocks.append(range(start, end))
        start = end
    return blocks


@njit(cache=True, nogil=True)
def _nearest_neighbours(
    first: int,
    users_of: _Rows,
    items_of: _Rows,
    norms: NDArray[np.float32],
    shrinkage: float,
    nearest: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> None:
    """Fill (item, neighbour) heaps for the items `first`, `first + 1`, ... from their users' items."""
    products = np.zeros(len(norms), np.float32)
    touched = np.empty(len(norms), np.int32)
    for row in range(len(nearest)):
        item, count, size = first + row, 0, 0
        for at in range(users_of.offsets[item], users_of.offsets[item + 1]):
            user, weight = users_of.columns[at], users_of.weights[at]
            for place in range(items_of.offsets[user], items_of.offsets[user + 1]):
                other = items_of.columns[place]
                if products[other] == 0:
                    touched[count] = other
                    count += 1
                products[other] += weight * items_of.weights[place]
        for other in touched[:count]:
            score = np.float32(products[other] / (norms[item] * norms[other] + shrinkage))
            products[other] = 0
            if other != item:
                size = offer(nearest[row], scores[row], size, other, score)


def _check_settings(neighbours: int, weights: str, shrinkage: float) -> None:
    problems = []
    if isinstance(neighbours, bool) or not isinstance(neighbours, int) or neighbours < 1:
        problems.append(f"neighbours={neighbours!r}: must be a whole number of at least 1; 500 is the default")
    if weights not in WEIGHTS:
        problems.append(f"weights={weights!r}: must be one of {', '.join(WEIGHTS)}")
    if isinstance(shrinkage, bool) or not isinstance(shrinkage, int | float) or not 0 <= shrinkage < float("inf"):
        problems.append(f"shrinkage={shrinkage!r}: must be a finite number of at least 0; 0 is plain cosine")
    if problems:
        raise ConfigError(problems)
