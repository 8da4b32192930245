"""What the tree-based baselines have in common as estimators."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from typing_extensions import Self

from pathdex.config import RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.errors import NotFittedError, QueryError
from pathdex.recommenders.base import Recommender, State, no_options
from pathdex.recommenders.listening import listening
from pathdex.recommenders.tree.config import TreeConfig
from pathdex.recommenders.tree.network import TreeNetwork
from pathdex.recommenders.tree.search import search
from pathdex.recommenders.tree.training import TreeTrainer
from pathdex.recommenders.tree.tree import Tree
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, join_rankings, row_blocks
from pathdex.training.callbacks import Callback

QUERY_BLOCK = 256


class TreeRecommender(Recommender):
    """A tree, a node model and a beam search. Every field of `TreeConfig` is a keyword."""

    defaults: ClassVar[Mapping[str, Any]] = {}
    """Where the method's defaults differ from those of `TreeConfig`."""

    def __init__(self, *, seed: int = 0, device: str = "cpu", threads: int | None = None, **parameters: Any) -> None:
        self.settings = TreeConfig(**{**self.defaults, **parameters})
        self.options = RunOptions(seed=seed, device=device, threads=threads)
        self.history_length = self.settings.history_length
        self._network: TreeNetwork | None = None

    def fit(
        self,
        data: Interactions,
        *,
        categories: Sequence[Any] | None = None,
        progress: bool | None = None,
        listener: Callback | None = None,
    ) -> Self:
        """Learn the node model and the tree.

        `categories`, one per item in the order of `data.items`, puts items of a category side by side in the first
        tree. `progress` shows a bar (default: where standard error is a terminal).
        """
        with listening(progress, listener) as heard:
            self._network = TreeTrainer(self.settings, self.options, data, categories, heard).run()
        self._items = data.items
        return self

    @property
    def network(self) -> TreeNetwork:
        if self._network is None:
            raise NotFittedError(self)
        return self._network

    @property
    def tree(self) -> Tree:
        """The tree over the catalogue."""
        return self.network.tree

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        """The best `min(n, eligible)` leaves under a beam; the score is the leaf's logit.

        Option: `beam`, the nodes to keep on each level.
        """
        beam = self._beam(options)
        network = self.network
        return join_rankings(
            [
                search(network, histories.take(rows), n, filters.take(rows), beam)
                for rows in row_blocks(len(histories), QUERY_BLOCK)
            ]
        )

    def _beam(self, options: Mapping[str, Any]) -> int:
        beam = options.get("beam", self.settings.beam_size)
        no_options(self, {name: value for name, value in options.items() if name != "beam"})
        if isinstance(beam, bool) or not isinstance(beam, int | np.integer) or beam < 1:
            raise QueryError(
                f"beam={beam!r}: must be a whole number of at least 1; leave it out for the default "
                f"{self.settings.beam_size}"
            )
        return int(beam)

    def _state(self) -> State:
        network = self.network
        return State(dataclasses.asdict(self.settings), {"order": network.tree.order}, dict(network.export()))

    def _restore(self, state: State) -> None:
        TreeRecommender.__init__(self, **state.settings)
        network = TreeNetwork(self.settings, Tree(np.array(state.arrays["order"])), torch.device(self.options.device))
        network.restore(state.weights)
        network.model.eval()
        self._network = network
