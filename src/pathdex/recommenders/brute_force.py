"""Exhaustive search with the vectors of a trained model: the ceiling of an index over these vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import Self

from pathdex.data.interactions import Interactions
from pathdex.data.item_details import ItemDetails
from pathdex.data.ragged import Ragged
from pathdex.data.source_table import Source
from pathdex.errors import ConfigError, NotFittedError, Problem
from pathdex.recommenders.base import EstimatorState, Recommender
from pathdex.recommenders.bundle_checks import check_names, check_object
from pathdex.recommenders.capabilities import HasVectors, require
from pathdex.recommenders.registry import estimator_class, from_bundle
from pathdex.retrieval.exhaustive import rank_exhaustively
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, top_n_of
from pathdex.storage.bundle import Bundle
from pathdex.storage.bundle_rules import BundleRules

if TYPE_CHECKING:
    from pathdex.training.callbacks import Callback


NO_INDEX = {"path_weight": 0.0, "neighbours": 0, "popularity_weight": 0.0}
"""Parts of Deep Retrieval's final score that exhaustive search does not have."""


class BruteForce(Recommender):
    """Scores every item by x . y_v + b_v.

    `BruteForce(model)` searches the vectors of a fitted model. `BruteForce(**parameters).fit(data)` trains Deep
    Retrieval's encoder without EM rounds; the keywords are those of `DeepRetrieval`. A bundle holds the whole model.
    """

    name = "brute-force"
    run_options = ("seed", "device", "threads")

    def __init__(self, model: HasVectors | None = None, **parameters: Any) -> None:
        self.parameters = parameters
        self._model: HasVectors | None = None
        if model is not None:
            self._wrap(model)

    @property
    def model(self) -> HasVectors:
        """The model whose vectors are searched."""
        if self._model is None:
            raise NotFittedError(self)
        return self._model

    def get_params(self) -> dict[str, Any]:
        return {name: value for name, value in self.parameters.items() if name not in self.run_options}

    def fit(
        self,
        data: Interactions | Source,
        *,
        items: ItemDetails | Source | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Self:
        # Imported here, since Deep Retrieval imports torch.
        from pathdex.recommenders.deep_retrieval import DeepRetrieval

        model = DeepRetrieval(**{"rounds": 0, "final_epochs": 0, **NO_INDEX, **self.parameters})
        self._wrap(model.fit(data, items=items, callbacks=callbacks))
        return self

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        self._check_query(n, options)
        model = self.model
        return rank_exhaustively(model.user_vectors(histories), model.item_vectors, model.item_bias, n, filters)

    def rank_candidates(self, histories: Ragged, candidates: Ragged, n: int) -> Ranking:
        """The best n of each query's candidates by the exhaustive score, which measures the loss of an index."""
        users = self.model.user_vectors(histories)
        vectors, bias = self.model.item_vectors, self.model.item_bias
        scores = [vectors[found] @ user + bias[found] for user, found in zip(users, candidates, strict=True)]
        flat = np.concatenate([np.empty(0, np.float32), *scores])
        return top_n_of(candidates, flat, len(self.items), n)

    def set_threads(self, threads: int | None) -> None:
        super().set_threads(threads)
        self.model.set_threads(threads)

    def _wrap(self, model: HasVectors) -> None:
        self._items, self._model, self._records = model.items, model, model.records
        self._reading, self._details = model.reading, model.details
        self.history_length = model.history_length

    def get_state(self) -> EstimatorState:
        state = self.model.get_state()
        settings = {"model": self.model.name, "settings": state.settings}
        return EstimatorState(settings, state.arrays, state.weights)

    @classmethod
    def bundle_rules(cls, settings: Mapping[str, Any], num_items: int) -> BundleRules:
        settings = _with_model(settings)
        check_names("settings", settings, ("model", "settings"))
        name = settings["model"]
        kind = estimator_class(name if isinstance(name, str) else repr(name))
        if not issubclass(kind, HasVectors):
            raise ConfigError([Problem("must be a model with vectors", "model", name)])
        check_object(f"settings of {name}", settings["settings"])
        # Exhaustive search would find removed items.
        return replace(kind.bundle_rules(settings["settings"], num_items), removes_items=False)

    def set_state(self, state: EstimatorState) -> None:
        settings = _with_model(state.settings)
        vocabulary = {f"items.{key}": array for key, array in self.items.arrays().items()}
        bundle = Bundle(settings["model"], settings["settings"], {**state.arrays, **vocabulary}, state.weights)
        self.parameters = {}
        self._wrap(require(from_bundle(bundle), HasVectors))


def _with_model(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings that name the model: bundles of earlier versions hold Deep Retrieval only."""
    is_old = isinstance(settings, Mapping) and "config" in settings
    return {"model": "deep-retrieval", "settings": settings} if is_old else settings
