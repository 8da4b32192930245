"""A recommender that has nothing to learn, for tests that only query one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typing_extensions import Self

from pathdex.data.interactions import Interactions
from pathdex.recommenders.base import EstimatorState, Recommender
from pathdex.training.callbacks import Callback


class FakeRecommender(Recommender):
    name = "fake"

    def get_params(self) -> dict[str, Any]:
        return {}

    def fit(self, data: Interactions, *, callbacks: Sequence[Callback] | None = None) -> Self:
        self._items = data.items
        return self

    def get_state(self) -> EstimatorState:
        raise AssertionError("not saved here")

    def set_state(self, state: EstimatorState) -> None:
        raise AssertionError("not opened here")
