"""Deep Retrieval with random weights and random paths: a model without training, for tests of retrieval."""

from typing import Any

import numpy as np
import torch

from pathdex.config import Config
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.index.initialization import random_paths
from pathdex.index.postings import Postings
from pathdex.kernels.neighbours import Neighbours
from pathdex.model.network import ITEM_ROWS, Network
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.model_state import ModelState

SMALL: dict[str, Any] = {
    "num_nodes": 4,
    "depth": 2,
    "paths_per_item": 2,
    "embedding_dim": 6,
    "structure_hidden": 8,
    "node_dim": 3,
    "history_length": 5,
}


def random_model(num_items: int = 30, seed: int = 0, **parameters: Any) -> DeepRetrieval:
    """A model whose item ids are 100, 101, ..."""
    config = Config(**{**SMALL, **parameters})
    assert config.num_nodes is not None
    torch.manual_seed(seed)
    network = Network(config, num_items, config)
    for parameter in network.parameters():
        parameter.data.normal_(0, 1)
    network.items.rows.normal_(0, 0.3)
    paths = random_paths(num_items, config.paths_per_item, config.num_nodes, config.depth, seed=seed)
    counts = np.random.default_rng(seed).integers(0, 50, num_items)
    postings = Postings.from_paths(paths, config.num_nodes, config.depth)
    weights = dict(network.export())
    rows = weights.pop(ITEM_ROWS)
    model = DeepRetrieval(config)
    model._items = Vocabulary(np.arange(100, 100 + num_items))
    shares, near = postings.log_shares(counts), random_neighbours(num_items, config.neighbours, seed)
    model._adopt(ModelState(config, weights, rows, paths, counts, postings, shares, [], near))
    return model


def random_neighbours(num_items: int, most: int, seed: int) -> Neighbours | None:
    """Up to `most` other items for each, with any similarity."""
    if not most:
        return None
    random = np.random.default_rng(seed)
    rows = [
        random.permutation(np.delete(np.arange(num_items), item))[: random.integers(most + 1)]
        for item in range(num_items)
    ]
    near = Ragged.from_rows(rows)
    return Neighbours(near.offsets, near.values.astype(np.int32), random.random(len(near.values), np.float32))
