"""A recommender that has nothing to learn, for tests that only query one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typing_extensions import Self

from pathdex.data.interactions import Interactions
from pathdex.data.item_details import ItemDetails
from pathdex.data.source_table import Source
from pathdex.recommenders.base import EstimatorState, Recommender
from pathdex.recommenders.fit_inputs import fit_inputs
from pathdex.training.callbacks import Callback


class FakeRecommender(Recommender):
    name = "fake"

    def get_params(self) -> dict[str, Any]:
        return {}

    def fit(
        self,
        data: Interactions | Source,
        *,
        items: ItemDetails | Source | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Self:
        data, items = fit_inputs(data, items)
        self._learn_from(data, items)
        return self

    def get_state(self) -> EstimatorState:
        raise AssertionError("not saved here")

    def set_state(self, state: EstimatorState) -> None:
        raise AssertionError("not opened here")
