"""The health of paths that are sharded by item: each path is counted by one worker."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.index.health import node_entropy, overlapping
from pathdex.index.paths import decode_paths
from pathdex.training.distributed.group import Group


def sharded_health(
    group: Group, paths: NDArray[np.int64], previous: NDArray[np.int64], num_nodes: int, depth: int
) -> dict[str, float | int | None]:
    """`IndexHealth.summary` of all items, for own paths (item, path) now and before."""
    codes, counts = np.unique(paths, return_counts=True)
    owners = codes % group.size
    order = np.argsort(owners, kind="stable")
    sent = np.bincount(owners, minlength=group.size).tolist()
    pairs = torch.from_numpy(np.stack([codes, counts], axis=1)[order])
    mine = group.exchange(pairs, sent)[0].numpy()
    used, place = np.unique(mine[:, 0], return_inverse=True)
    sizes = np.bincount(place, weights=mine[:, 1], minlength=len(used)).astype(np.int64)
    nodes = decode_paths(used, num_nodes, depth)
    passing = np.zeros((depth, num_nodes), np.int64)
    for layer in range(depth):
        np.add.at(passing[layer], nodes[:, layer], sizes)
    passing = group.total(passing)
    stayed = overlapping(paths, previous)
    sums = group.total(np.array([len(used), int((sizes**2).sum()), int(sizes.sum()), int(stayed.sum()), stayed.size]))
    total_used, squares, entries, kept, places = sums.tolist()
    return {
        "used_paths": total_used,
        "item_mean_size": squares / entries,
        "top_size": group.largest(int(sizes.max(initial=0))),
        "entropy_share": min(node_entropy(one) for one in passing) / math.log(num_nodes),
        "dead_nodes": int((passing == 0).sum()),
        "overlap": kept / places,
    }
