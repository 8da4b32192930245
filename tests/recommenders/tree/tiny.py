"""A small tree network with random weights, and hyper-parameters that train in a second."""

from typing import Any

import numpy as np
import torch

from pathdex.recommenders.tree.config import TreeConfig
from pathdex.recommenders.tree.network import TreeNetwork
from pathdex.recommenders.tree.tree import Tree

TINY: dict[str, Any] = {
    "embedding_dim": 8,
    "hidden": 8,
    "windows": 3,
    "first_level": 2,
    "epochs": 2,
    "negatives": 6,
    "batch_size": 256,
    "learning_rate": 0.02,
    "node_learning_rate": 0.1,
    "beam_size": 4,
    "threads": 1,
}


def tiny_network(num_items: int, *, seed: int = 0, **settings: Any) -> TreeNetwork:
    torch.manual_seed(seed)
    tree = Tree(np.random.default_rng(seed).permutation(num_items))
    fields = {"embedding_dim": 4, "hidden": 4, "windows": 3, "first_level": 1, "history_length": 6}
    network = TreeNetwork(TreeConfig(**{**fields, **settings}), tree, torch.device("cpu"))
    network.rows[:, -1] = torch.randn(tree.num_rows)
    network.model.eval()
    return network
