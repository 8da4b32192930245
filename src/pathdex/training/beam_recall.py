"""How many held-out items a beam reaches: the recall of the paths, before any item is scored."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.splits import Queries
from pathdex.index.paths import encode_paths
from pathdex.index.postings import Postings
from pathdex.model.beam import beam_search
from pathdex.model.network import Network


@torch.no_grad()
def beam_recall(network: Network, queries: Queries, paths: NDArray[np.int64], config: Config) -> float:
    """The share of a query's held-out items that are on one of its `beam_size` most probable paths, its mean over the
    queries. `paths` (item, path) are those of all items.
    """
    assert config.num_nodes is not None
    postings = Postings.from_paths(paths, config.num_nodes, config.depth)
    users = network.user_vectors(queries.history)
    prefixes = [torch.from_numpy(codes).to(users.device) for codes in postings.prefixes[1:]]
    nodes, _ = beam_search(network.structure, users, config.beam_size, prefixes)
    beams = encode_paths(nodes.cpu().numpy(), config.num_nodes)
    shares = [np.isin(paths[truth], beam).any(axis=1).mean() for truth, beam in zip(queries.truth, beams, strict=True)]
    return float(np.mean(shares))
