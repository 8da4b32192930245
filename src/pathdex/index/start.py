"""The first paths of all items, before any M-step."""

from __future__ import annotations

import numpy as np

from pathdex.errors import ConfigError
from pathdex.index.checks import Codes, check_whole
from pathdex.index.paths import check_capacity


def random_paths(num_items: int, paths_per_item: int, num_nodes: int, depth: int, seed: int = 0) -> Codes:
    """J distinct paths per item (item, path), uniform over all K^D: the start of the paper's EM."""
    check_whole("num_items", num_items)
    capacity = _check_paths_per_item(paths_per_item, num_nodes, depth)
    random = np.random.default_rng(seed)
    chosen = np.empty((num_items, paths_per_item), np.int64)
    for j in range(paths_per_item):
        # One of the capacity - j paths that the item does not have yet: count past the ones it has, lowest first.
        path = random.integers(0, capacity - j, num_items)
        taken = np.sort(chosen[:, :j], axis=1)
        for rank in range(j):
            path += path >= taken[:, rank]
        chosen[:, j] = path
    return chosen


def _check_paths_per_item(paths_per_item: int, num_nodes: int, depth: int) -> int:
    capacity = check_capacity(num_nodes, depth)
    if check_whole("paths_per_item", paths_per_item) > capacity:
        raise ConfigError(
            [
                f"paths_per_item={paths_per_item}: J must be at most K^D={capacity}; "
                "raise num_nodes or depth, or lower paths_per_item"
            ]
        )
    return capacity
