"""What only some recommenders can do. Callers test for a capability, never for a class:

isinstance(model, HasIndex)             # does it have one?
require(model, HasIndex)                # or raise a QueryError
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Id
from pathdex.errors import QueryError
from pathdex.index.health import IndexHealth
from pathdex.recommenders.base import History, Recommender
from pathdex.retrieval.explain import Explanation, WhyNot
from pathdex.retrieval.filters import NO_FILTERS, Filters

T = TypeVar("T", bound=Recommender)


class HasVectors(Recommender):
    """Scores are inner products, x . y_v + b_v, so exhaustive search over all items is possible."""

    lacking: ClassVar[str] = "has no vectors"

    @property
    @abstractmethod
    def item_vectors(self) -> NDArray[np.float32]:
        """y_v: (item, dim)."""

    @property
    @abstractmethod
    def item_bias(self) -> NDArray[np.float32]:
        """b_v: (item,)."""

    @abstractmethod
    def user_vectors(self, histories: Ragged) -> NDArray[np.float32]:
        """x: (query, dim)."""


class HasIndex(Recommender):
    """Items live on the paths of an index."""

    lacking: ClassVar[str] = "has no paths"

    @property
    @abstractmethod
    def num_nodes(self) -> int:
        """K, the nodes of each layer."""

    @property
    @abstractmethod
    def paths(self) -> NDArray[np.int64]:
        """The path codes of all items: (item, J)."""

    @abstractmethod
    def health(self) -> IndexHealth:
        """How well items are spread over the paths."""

    @abstractmethod
    def item_paths(self, item: Id) -> list[tuple[int, ...]]:
        """The J paths of an item, each as its nodes."""

    @abstractmethod
    def path_items(self, path: Sequence[int]) -> list[Id]:
        """The items on a path, given as its nodes; empty if the path is not in use."""

    @abstractmethod
    def candidate_items(
        self, histories: Ragged, filters: Filters = NO_FILTERS, *, n: int = 1, **options: Any
    ) -> Ragged:
        """The items that `rank` scores for each history, with the same options."""


class CanExplain(Recommender):
    """Says why an item was recommended, and why another was not."""

    lacking: ClassVar[str] = "cannot explain its answers"

    @abstractmethod
    def explain(self, history: History, item: Id, *, beam: int | None = None) -> Explanation:
        """Which of an item's paths a beam finds for a history, how likely each is, and how the item scores."""

    @abstractmethod
    def why_not(
        self, history: History, item: Id, *, n: int = 10, beam: int | None = None, exclude_seen: bool = True
    ) -> WhyNot:
        """What keeps an item out of `recommend(history, n)`."""


def require(model: Recommender, capability: Callable[..., T]) -> T:
    """The model, if it has the capability; a `QueryError` if not."""
    kind: Any = capability  # mypy refuses abstract classes as type[T].
    if not isinstance(model, kind):
        raise QueryError(f"a {model.name} model {kind.lacking}", remedy="use a deep-retrieval model")
    found: T = model
    return found
