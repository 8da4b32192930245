"""The wanted path size, where a user says instead how many candidates a query should have."""

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
"""Training positions that stand in for queries."""
TRIALS, TOLERANCE = 4, 0.1
"""How often an M-step is repeated with another path size, and which share of the candidates may be missed."""


def first_path_size(config: Config) -> float:
    """The path size that a catalogue is laid out for, before anything is measured."""
    if config.candidates_per_query is None:
        return config.path_size
    return max(1.0, config.candidates_per_query / config.beam_size)


def candidates_per_query(
    structure: LayerNetwork, users: NDArray[np.float32], paths: NDArray[np.int64], config: Config
) -> float:
    """How many distinct items lie on the `beam_size` most probable paths of a user, on average over users (user, dim).

    Fewer than `beam_size` times the path size, since an item lies on several paths, and likely paths are near each
    other.
    """
    assert config.num_nodes is not None
    postings = Postings.from_paths(paths, config.num_nodes, config.depth)
    device = next(iter(structure.parameters())).device  # type: ignore[attr-defined]
    prefixes = [torch.from_numpy(codes).to(device) for codes in postings.prefixes[1:]]
    nodes, log_p = beam_search(structure, torch.from_numpy(users).to(device), config.beam_size, prefixes)
    codes = encode_paths(nodes.cpu().numpy(), config.num_nodes)
    found = [len(postings.gather(own, scores)[0]) for own, scores in zip(codes, log_p.cpu().numpy(), strict=True)]
    return float(np.mean(found))
