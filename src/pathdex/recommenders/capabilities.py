"""Optional capabilities of recommenders. Callers test for a capability, never for a concrete class:

isinstance(model, HasIndex)             # whether the model has an index
require(model, HasIndex)                # the model, or a QueryError
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.data.interactions import Interactions
from pathdex.data.item_details import ItemDetails
from pathdex.data.ragged import Ragged
from pathdex.data.source_table import Source
from pathdex.data.splits import Queries
from pathdex.data.vocabulary import Id
from pathdex.errors import QueryError
from pathdex.index.health import IndexHealth
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.query import History
from pathdex.retrieval.explain import Explanation, WhyNot
from pathdex.retrieval.filters import NO_FILTERS, Filters

if TYPE_CHECKING:
    from pathdex.training.callbacks import Callback

T = TypeVar("T", bound=Recommender)


class HasVectors(Recommender):
    """Scores by inner products, x . y_v + b_v, so exhaustive search is possible."""

    lacking: ClassVar[str] = "has no vectors"

    @property
    @abstractmethod
    def item_vectors(self) -> NDArray[np.float32]:
        """Item vectors y_v: (item, dim)."""

    @property
    @abstractmethod
    def item_bias(self) -> NDArray[np.float32]:
        """Item biases b_v: (item,)."""

    @abstractmethod
    def user_vectors(self, histories: Ragged) -> NDArray[np.float32]:
        """User vectors x: (query, dim)."""


class HasIndex(Recommender):
    """Has an index that assigns items to paths."""

    lacking: ClassVar[str] = "has no paths"

    def unchanging(self) -> AbstractContextManager[None]:
        """Within it, no delta changes the model. Not for long work: a live model's deltas wait for it."""
        return nullcontext()

    @property
    @abstractmethod
    def num_nodes(self) -> int:
        """K, nodes per layer."""

    @property
    @abstractmethod
    def paths(self) -> NDArray[np.int64]:
        """The path codes of all items: (item, J)."""

    @abstractmethod
    def health(self) -> IndexHealth:
        """How evenly items are spread over paths and nodes."""

    @abstractmethod
    def item_paths(self, item: Id) -> list[tuple[int, ...]]:
        """The J paths of an item, as nodes."""

    @abstractmethod
    def path_items(self, path: Sequence[int]) -> list[Id]:
        """The items on a path, given as nodes; empty if the path is not in use."""

    @abstractmethod
    def candidate_items(
        self, histories: Ragged, filters: Filters = NO_FILTERS, *, n: int = 1, **options: Any
    ) -> Ragged:
        """The items that `rank` scores for each history, with the same options."""


class ChoosesOnValidation(Recommender):
    """Chooses hyper-parameters that are left open on validation queries."""

    lacking: ClassVar[str] = "chooses nothing on validation data"

    @abstractmethod
    def fit(
        self,
        data: Interactions | Source,
        *,
        items: ItemDetails | Source | None = None,
        callbacks: Sequence[Callback] | None = None,
        validation: Queries | None = None,
    ) -> Self:
        """Fit on the sequences of all users; returns the estimator."""


class CanExplain(Recommender):
    """Explains why an item was or was not recommended."""

    lacking: ClassVar[str] = "cannot explain its answers"

    @abstractmethod
    def explain(self, history: History, item: Id, *, beam: int | None = None) -> Explanation:
        """Which paths of an item a beam finds for a history, their probabilities, and the item's score."""

    @abstractmethod
    def why_not(
        self, history: History, item: Id, *, n: int = 10, beam: int | None = None, exclude_seen: bool = True
    ) -> WhyNot:
        """Why an item is not in `recommend(history, n)`."""


def require(model: Recommender, capability: Callable[..., T]) -> T:
    """The model if it has the capability; raises `QueryError` if not."""
    kind: Any = capability  # mypy refuses abstract classes as type[T].
    if not isinstance(model, kind):
        article = "an" if model.name[0] in "aeiou" else "a"
        raise QueryError(f"{article} {model.name} model {kind.lacking}", remedy="use a deep-retrieval model")
    found: T = model
    return found
