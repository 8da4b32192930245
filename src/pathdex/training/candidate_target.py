"""`candidates_per_query`: derive the path size from a target number of candidates."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.index.paths import encode_paths
from pathdex.index.postings import Postings
from pathdex.model.beam import beam_search
from pathdex.model.structure import LayerNetwork

QUERIES = 256
"""Training positions used as sample queries."""
TRIALS, TOLERANCE = 4, 0.1
"""Maximum number of M-steps per round, and the accepted relative deviation from the target."""


def first_path_size(config: Config) -> float:
    """The path size before anything is measured."""
    if config.candidates_per_query is None:
        return config.path_size
    return max(1.0, config.candidates_per_query / config.beam_size)


def candidates_per_query(
    structure: LayerNetwork, users: NDArray[np.float32], paths: NDArray[np.int64], config: Config
) -> float:
    """Mean number of distinct items on the `beam_size` most probable paths of users (user, dim).

    Less than `beam_size` times the path size, since items are on several paths and likely paths share items.
    """
    assert config.num_nodes is not None
    postings = Postings.from_paths(paths, config.num_nodes, config.depth)
    device = next(iter(structure.parameters())).device  # type: ignore[attr-defined]
    prefixes = [torch.from_numpy(codes).to(device) for codes in postings.prefixes[1:]]
    nodes, _ = beam_search(structure, torch.from_numpy(users).to(device), config.beam_size, prefixes)
    codes = encode_paths(nodes.cpu().numpy(), config.num_nodes)
    return float(np.mean([len(np.unique(postings.items_on(own))) for own in codes]))
