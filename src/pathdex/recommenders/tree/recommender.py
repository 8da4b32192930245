"""Base of the tree-based estimators."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from typing_extensions import Self

from pathdex.config import RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.item_details import ItemDetails
from pathdex.data.ragged import Ragged
from pathdex.data.source_table import Source
from pathdex.errors import NotFittedError
from pathdex.parameters import from_keywords
from pathdex.recommenders.arguments import check_positive
from pathdex.recommenders.base import EstimatorState, Recommender
from pathdex.recommenders.bundle_checks import check_names
from pathdex.recommenders.fit_inputs import fit_inputs
from pathdex.recommenders.tree.config import TreeConfig
from pathdex.recommenders.tree.network import VECTORS, TreeNetwork
from pathdex.recommenders.tree.search import search
from pathdex.recommenders.tree.training import TreeTrainer
from pathdex.recommenders.tree.tree import Tree, num_rows
from pathdex.recommenders.weight_specs import WEIGHT_LIMIT
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, join_rankings, row_blocks
from pathdex.storage.array_spec import order_spec, weight_spec
from pathdex.storage.bundle_rules import BundleRules
from pathdex.training.callbacks import Callback

QUERY_BLOCK = 256


class TreeRecommender(Recommender):
    """Beam search over a tree with a node model. Every field of `TreeConfig` is a keyword."""

    defaults: ClassVar[Mapping[str, Any]] = {}
    """Defaults that differ from those of `TreeConfig`."""

    run_options = ("seed", "device", "threads")
    query_options = ("beam",)

    def __init__(self, *, seed: int = 0, device: str = "cpu", threads: int | None = None, **parameters: Any) -> None:
        self.settings = from_keywords(TreeConfig, {**self.defaults, **parameters})
        self.options = RunOptions(seed=seed, device=device, threads=threads)
        self.history_length = self.settings.history_length
        self._network: TreeNetwork | None = None

    def get_params(self) -> dict[str, Any]:
        return dataclasses.asdict(self.settings)

    def fit(
        self,
        data: Interactions | Source,
        *,
        items: ItemDetails | Source | None = None,
        categories: Sequence[Any] | None = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Train the node model and learn the tree; returns the estimator.

        `categories`, one per item in the order of `data.items`, groups the items of the first tree. `checkpoint` is a
        file for the training state; `resume=True` continues from it and gives the result of an uninterrupted training.
        """
        data, items = fit_inputs(data, items)
        trainer = TreeTrainer(
            self.settings,
            self.options,
            data,
            categories,
            callbacks=callbacks,
            checkpoint=None if checkpoint is None else Path(checkpoint),
        )
        if resume:
            trainer.resume()
        self._network = trainer.run()
        self._learn_from(data, items)
        self._records = trainer.loop.records
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
        """The best `min(n, eligible)` leaves that a beam finds; the score is the leaf's logit.

        Option: `beam`, the number of nodes to keep per level.
        """
        self._check_query(n, options)
        default = self.settings.beam_size
        beam = check_positive("beam", options.get("beam", default), f"leave it out for the default {default}")
        beam = min(beam, max(1, len(self.items)))
        network = self.network
        return join_rankings(
            [
                search(network, histories.take(rows), n, filters.take(rows), beam)
                for rows in row_blocks(len(histories), QUERY_BLOCK)
            ]
        )

    def get_state(self) -> EstimatorState:
        network = self.network
        return EstimatorState(self.get_params(), {"order": network.tree.order}, dict(network.export()))

    @classmethod
    def bundle_rules(cls, settings: Mapping[str, Any], num_items: int) -> BundleRules:
        check_names("settings", settings, [spec.name for spec in dataclasses.fields(TreeConfig)])
        config = from_keywords(TreeConfig, settings)
        dim, hidden = config.embedding_dim, config.hidden
        shapes: dict[str, tuple[int, ...]] = {
            "start": (dim,),
            "recency": (config.windows if config.node_model == "attention" else 1,),
            "user_hidden.weight": (2 * hidden, config.windows * dim),
            "user_hidden.bias": (2 * hidden,),
            "user_vector.weight": (dim, 2 * hidden),
            "user_vector.bias": (dim,),
            "user_part.weight": (hidden, 2 * hidden),
            "user_part.bias": (hidden,),
            "last.weight": (dim, dim),
            "mean.weight": (dim, dim),
            "key.weight": (dim, dim),
            "node_part.weight": (hidden, dim),
            "seen_part.weight": (hidden, dim),
            "out.weight": (1, hidden),
        }
        weights = {name: weight_spec(*shape, limit=WEIGHT_LIMIT) for name, shape in shapes.items()}
        weights[VECTORS] = weight_spec(num_rows(num_items), dim + 1)
        return BundleRules({"order": order_spec(num_items)}, weights)

    def set_state(self, state: EstimatorState) -> None:
        TreeRecommender.__init__(self, **state.settings)
        network = TreeNetwork(self.settings, Tree(np.array(state.arrays["order"])), torch.device(self.options.device))
        network.restore(state.weights)
        network.model.eval()
        self._network = network
