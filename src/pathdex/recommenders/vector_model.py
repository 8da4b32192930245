"""What the inner-product baselines share: vectors trained like the encoder of Deep Retrieval, without its index."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn
from typing_extensions import Self

from pathdex.config import Config, RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.errors import NotFittedError
from pathdex.model.network import Network
from pathdex.recommenders.base import Recommender, State, no_options
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.listening import listening
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking
from pathdex.training.callbacks import Callback
from pathdex.training.trainer import Trainer

_NO_INDEX: dict[str, Any] = {
    "rounds": 0,
    "final_epochs": 0,
    "start": "random",
    "num_nodes": 2,
    "depth": 1,
    "structure_hidden": 1,
    "node_dim": 1,
    "paths_per_item": 1,
    "candidate_paths": 1,
}
"""A structure model that is there, since the network has one, and never trained."""


class VectorRecommender(Recommender):
    """Scores an item by s(x, v) = x . y_v + b_v and ranks by exhaustive search.

    `parameters` are hyper-parameters of `Config`, which checks them.
    """

    def __init__(self, parameters: dict[str, Any], options: RunOptions) -> None:
        self.parameters = parameters
        self.options = options
        self.config = Config(**_NO_INDEX, **parameters)
        self.history_length = self.config.history_length
        self._network: Network | None = None

    def _encoder(self) -> nn.Module | None:
        """An encoder without weights in the place of the one that the configuration names."""
        return None

    def fit(self, data: Interactions, *, progress: bool | None = None, listener: Callback | None = None) -> Self:
        """Learn the vectors; `progress` shows a bar (default: where standard error is a terminal)."""
        with listening(progress, listener) as heard:
            trainer = Trainer(self.config, self.options, data, listener=heard)
            trainer.network.encoder = self._encoder() or trainer.network.encoder
            trainer.run()
        self._adopt(trainer.network)
        self._items = data.items
        return self

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        """The best `min(n, eligible)` items of the whole catalogue."""
        no_options(self, options)
        return BruteForce(self).rank(histories, n, filters)

    @property
    def network(self) -> Network:
        if self._network is None:
            raise NotFittedError(self)
        return self._network

    def user_vectors(self, histories: Ragged) -> NDArray[np.float32]:
        """(query, dim)."""
        return self.network.user_vectors(histories).cpu().numpy()

    @property
    def item_vectors(self) -> NDArray[np.float32]:
        """(item, dim)."""
        table = self.network.items
        return table.outputs(table.rows).cpu().numpy()

    @property
    def item_bias(self) -> NDArray[np.float32]:
        """(item,)."""
        table = self.network.items
        return table.bias(table.rows).cpu().numpy()

    def _adopt(self, network: Network) -> None:
        network.eval()
        self._network = network

    def _state(self) -> State:
        return State(settings=dict(self.parameters), weights=dict(self.network.export()))

    def _restore(self, state: State) -> None:
        VectorRecommender.__init__(self, dict(state.settings), RunOptions())
        network = Network(self.config, len(self.items))
        network.encoder = self._encoder() or network.encoder
        network.restore(state.weights)
        self._adopt(network)
