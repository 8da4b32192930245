"""Alternating least squares for implicit feedback (Hu, Koren and Volinsky 2008), from the library `implicit`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from typing_extensions import Self

from pathdex.config import RunOptions
from pathdex.data.interactions import Interactions, popularity_order
from pathdex.data.item_details import ItemDetails
from pathdex.data.matrix import interaction_matrix
from pathdex.data.ragged import Ragged
from pathdex.data.source_table import Source
from pathdex.errors import DataError, NotFittedError, QueryError
from pathdex.parameters import check_fields, from_keywords, parameter
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.bundle_checks import check_names
from pathdex.recommenders.capabilities import HasVectors
from pathdex.recommenders.fit_inputs import fit_inputs
from pathdex.retrieval.exhaustive import rank_exhaustively
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, fill_in_order, no_ranking, replace_rows
from pathdex.storage.array_spec import order_spec, weight_spec
from pathdex.storage.bundle_rules import BundleRules
from pathdex.system import IMPLICIT
from pathdex.training.callbacks import Callback, StepProgress, following


@dataclass(frozen=True, kw_only=True)
class ALSConfig:
    """Hyper-parameters, named as in the library."""

    factors: int = parameter(64, "dimension of user and item vectors", low=1)
    regularization: float = parameter(10.0, "L2 regularization", low=0.0)
    alpha: float = parameter(10.0, "weight of an interaction; an absent one has weight 1", above=0.0)
    iterations: int = parameter(15, "ALS iterations", low=1)

    def __post_init__(self) -> None:
        check_fields(self)


class ImplicitALS(HasVectors):
    """The library's `AlternatingLeastSquares` on binary interactions (extra `peers`).

    The user vector of a query is solved from its whole history (`recalculate_user`), so known and new users are treated
    alike. The score is the inner product. An empty history gets the most popular items, with score 0. Every field of
    `ALSConfig` is a keyword.
    """

    name = "implicit-als"
    run_options = ("seed", "threads")

    def __init__(self, *, seed: int = 0, threads: int | None = None, **parameters: Any) -> None:
        IMPLICIT.require()
        self.settings = from_keywords(ALSConfig, parameters)
        self.options = RunOptions(seed=seed, threads=threads)
        self._model: Any = None
        self._order: NDArray[np.int64] | None = None

    def fit(
        self,
        data: Interactions | Source,
        *,
        items: ItemDetails | Source | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Self:
        data, items = fit_inputs(data, items)
        if data.num_interactions == 0:
            raise DataError("data: has no interactions; training needs at least one user with one item")
        model, iterations = self._untrained(), self.settings.iterations
        with following(callbacks) as callback, _one_blas_thread():

            def report(iteration: int, seconds: float, loss: float | None) -> None:
                callback.on_step_end(
                    StepProgress("als", 1, 1, iteration + 1, iterations, {}, (iteration + 1) / iterations)
                )

            model.fit(_confidence(data.sequences, data.num_items), show_progress=False, callback=report)
        self._learn_from(data, items)
        self._adopt(model, popularity_order(data.item_counts()))
        return self

    def get_params(self) -> dict[str, Any]:
        return dataclasses.asdict(self.settings)

    def set_threads(self, threads: int | None) -> None:
        super().set_threads(threads)
        if self._model is not None:
            self._model.num_threads = threads or 0

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        """The best `min(n, eligible)` items of the whole catalogue."""
        self._check_query(n, options)
        users = self.user_vectors(histories)
        ranking = rank_exhaustively(users, self.item_vectors, self.item_bias, n, filters)
        empty = np.flatnonzero(histories.lengths == 0)
        zeros = np.zeros(len(self.items), np.float32)
        popular = fill_in_order(no_ranking(len(empty), n), self.order, zeros, filters.take(empty))
        return replace_rows(ranking, empty, popular)

    @property
    def order(self) -> NDArray[np.int64]:
        """Item codes, most popular first."""
        if self._order is None:
            raise NotFittedError(self)
        return self._order

    def user_vectors(self, histories: Ragged) -> NDArray[np.float32]:
        """User vectors: (query, factor)."""
        if self._model is None:
            raise NotFittedError(self)
        if not len(histories):
            return np.empty((0, self.settings.factors), np.float32)
        try:
            with _one_blas_thread():
                rows = _confidence(histories, len(self.items))
                vectors = self._model.recalculate_user(np.arange(len(histories)), rows)
        except ValueError as error:
            rule = "the vector of a history cannot be solved from these item vectors"
            raise QueryError(rule, remedy="train again with more regularization") from error
        return np.asarray(vectors, np.float32)

    @property
    def item_vectors(self) -> NDArray[np.float32]:
        """Item vectors: (item, factor)."""
        if self._model is None:
            raise NotFittedError(self)
        return np.asarray(self._model.item_factors, np.float32)

    @property
    def item_bias(self) -> NDArray[np.float32]:
        """Zeros: ALS has no item bias."""
        return np.zeros(len(self.items), np.float32)

    def _untrained(self) -> Any:
        from implicit.cpu.als import AlternatingLeastSquares

        # Rows are solved independently, so the result does not depend on the number of threads.
        with _one_blas_thread():
            return AlternatingLeastSquares(
                **dataclasses.asdict(self.settings),
                num_threads=self.options.threads or 0,
                random_state=self.options.seed,
            )

    def _adopt(self, model: Any, order: NDArray[np.int64]) -> None:
        self._model, self._order = model, order

    def get_state(self) -> EstimatorState:
        arrays: dict[str, NDArray[Any]] = {"item_factors": self.item_vectors, "order": self.order}
        return EstimatorState(self.get_params(), arrays)

    @classmethod
    def bundle_rules(cls, settings: Mapping[str, Any], num_items: int) -> BundleRules:
        check_names("settings", settings, [spec.name for spec in dataclasses.fields(ALSConfig)])
        config = from_keywords(ALSConfig, settings)
        return BundleRules({"item_factors": weight_spec(num_items, config.factors), "order": order_spec(num_items)})

    def set_state(self, state: EstimatorState) -> None:
        ImplicitALS.__init__(self, **state.settings)
        model = self._untrained()
        model.item_factors = np.array(state.arrays["item_factors"])
        self._adopt(model, np.array(state.arrays["order"]))


def _confidence(rows: Ragged, num_items: int) -> sparse.csr_matrix:
    """Interactions (row, item) as `csr_matrix`, which the library requires."""
    return sparse.csr_matrix(interaction_matrix(rows, num_items, binary=True))


def _one_blas_thread() -> Any:
    """Limit BLAS to one thread, since its threads slow down those of the library, which warns about them."""
    return _thread_pools().limit(limits=1, user_api="blas")


@functools.cache
def _thread_pools() -> Any:
    """Cached, since inspecting the loaded libraries takes longer than a query."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
