"""Base of the inner-product baselines: Deep Retrieval's encoder training without an index."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn
from typing_extensions import Self

from pathdex.config import EncoderConfig, RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.item_details import ItemDetails
from pathdex.data.ragged import Ragged
from pathdex.data.source_table import Source
from pathdex.errors import NotFittedError
from pathdex.model.network import ITEM_ROWS, Network
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.capabilities import HasVectors
from pathdex.recommenders.fit_inputs import fit_inputs
from pathdex.recommenders.weight_specs import network_specs, row_width
from pathdex.retrieval.exhaustive import rank_exhaustively
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking
from pathdex.storage.array_spec import weight_spec
from pathdex.storage.bundle_rules import BundleRules
from pathdex.training.callbacks import Callback
from pathdex.training.setup import prepare
from pathdex.training.trainer import train_encoder


class VectorRecommender(HasVectors):
    """Scores items by s(x, v) = x . y_v + b_v and ranks by exhaustive search."""

    run_options = ("seed", "device", "threads")

    def __init__(self, config: EncoderConfig, options: RunOptions) -> None:
        self.config, self.options = config, options
        self.history_length = config.history_length
        self._network: Network | None = None

    def _encoder(self) -> nn.Module | None:
        """An encoder that replaces the one named in the configuration; None for no replacement."""
        return None

    def fit(
        self,
        data: Interactions | Source,
        *,
        items: ItemDetails | Source | None = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Train the vectors; returns the estimator.

        `checkpoint` is a file for the training state; `resume=True` continues from it and gives the result of an
        uninterrupted training.
        """
        data, items = fit_inputs(data, items)
        prepare(data, self.options)
        data = data.shuffled_if_unordered(self.options.seed)
        network = Network(self.config, data.num_items, encoder=self._encoder()).place(self.options.device)
        self._records = train_encoder(
            self.config,
            self.options,
            data,
            network=network,
            callbacks=callbacks,
            checkpoint=None if checkpoint is None else Path(checkpoint),
            resume=resume,
        )
        self._network = network.eval()
        self._learn_from(data, items)
        self._on_fitted()
        return self

    def _on_fitted(self) -> None:
        """Called at the end of `fit`."""

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        """The best `min(n, eligible)` items of the catalogue."""
        self._check_query(n, options)
        return rank_exhaustively(self.user_vectors(histories), self.item_vectors, self.item_bias, n, filters)

    @property
    def network(self) -> Network:
        if self._network is None:
            raise NotFittedError(self)
        return self._network

    def user_vectors(self, histories: Ragged) -> NDArray[np.float32]:
        return self.network.user_vectors(histories).cpu().numpy()

    @property
    def item_vectors(self) -> NDArray[np.float32]:
        table = self.network.items
        return table.outputs(table.rows).cpu().numpy()

    @property
    def item_bias(self) -> NDArray[np.float32]:
        table = self.network.items
        return table.bias(table.rows).cpu().numpy()

    def get_state(self) -> EstimatorState:
        return EstimatorState(settings=self.get_params(), weights=dict(self.network.export()))

    @classmethod
    @abstractmethod
    def bundle_config(cls, settings: Mapping[str, Any]) -> EncoderConfig:
        """The configuration in the settings of a bundle; `ConfigError` for bad settings."""

    @classmethod
    def bundle_rules(cls, settings: Mapping[str, Any], num_items: int) -> BundleRules:
        config = cls.bundle_config(settings)
        weights = {**network_specs(config), ITEM_ROWS: weight_spec(num_items, row_width(config))}
        return BundleRules(weights=weights, ignored_weights="structure.")

    def set_state(self, state: EstimatorState) -> None:
        network = Network(self.config, len(self.items), encoder=self._encoder())
        # Bundles of earlier versions also hold an untrained structure model.
        network.restore({name: one for name, one in state.weights.items() if not name.startswith("structure.")})
        self._network = network.eval()
