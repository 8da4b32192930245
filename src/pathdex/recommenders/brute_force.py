"""Score every item: the ceiling of a trained Deep Retrieval, with its encoder and reranker and without its index."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import NotFittedError
from pathdex.recommenders.base import Recommender, State, no_options
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, TopN, join_rankings, row_blocks, top_n_of
from pathdex.storage.bundle import Bundle

QUERY_BLOCK = 256
ITEM_BLOCK = 65_536
"""256 x 65,536 float32 scores: 64 MB at a time, whatever the catalogue."""


class VectorModel(Protocol):
    """What brute force needs of a model: a user vector per history, a vector and a bias per item."""

    @property
    def items(self) -> Vocabulary: ...
    @property
    def history_length(self) -> int | None: ...
    @property
    def item_vectors(self) -> NDArray[np.float32]: ...
    @property
    def item_bias(self) -> NDArray[np.float32]: ...
    def user_vectors(self, histories: Ragged) -> NDArray[np.float32]: ...
    def _state(self) -> State: ...


class BruteForce(Recommender):
    """Exhaustive search by `x . w_v + b_v` over all items.

    `BruteForce(model)` shares the encoder and the reranker of a fitted Deep Retrieval; `BruteForce().fit(data)` trains
    them alone, without an EM round, with the keywords of `DeepRetrieval`. A saved brute force holds the whole model
    that it was made of.
    """

    name = "brute-force"

    def __init__(self, model: VectorModel | None = None, **parameters: Any) -> None:
        self.parameters = parameters
        self._model: VectorModel | None = None
        if model is not None:
            self._wrap(model)

    @property
    def model(self) -> VectorModel:
        """The model whose vectors are searched."""
        if self._model is None:
            raise NotFittedError(self)
        return self._model

    def fit(self, data: Interactions) -> Self:
        # Deep Retrieval imports torch, which a user of the other baselines need not wait for.
        from pathdex.recommenders.deep_retrieval import DeepRetrieval

        self._wrap(DeepRetrieval(**{"rounds": 0, "final_epochs": 0, **self.parameters}).fit(data))
        return self

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        no_options(self, options)
        users, vectors, bias = self.model.user_vectors(histories), self.model.item_vectors, self.model.item_bias
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

    def rank_candidates(self, histories: Ragged, candidates: Ragged, n: int) -> Ranking:
        """The best n of each query's own candidates by the exhaustive score: what an index alone can lose."""
        users = self.model.user_vectors(histories)
        vectors, bias = self.model.item_vectors, self.model.item_bias
        scores = [vectors[found] @ user + bias[found] for user, found in zip(users, candidates, strict=True)]
        together = np.concatenate([np.empty(0, np.float32), *scores])
        return top_n_of(candidates, together, len(self.items), n)

    def _wrap(self, model: VectorModel) -> None:
        self._items = model.items
        self._model = model
        self.history_length = model.history_length

    def _state(self) -> State:
        return self.model._state()

    def _restore(self, state: State) -> None:
        from pathdex.recommenders.deep_retrieval import DeepRetrieval

        vocabulary = {f"items.{key}": array for key, array in self.items.arrays().items()}
        bundle = Bundle(DeepRetrieval.name, state.settings, {**state.arrays, **vocabulary}, state.weights)
        self.parameters = {}
        self._wrap(DeepRetrieval._from_bundle(bundle))
