"""The first paths of all items, before any M-step."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from pathdex.errors import ConfigError, DataError
from pathdex.index.checks import Codes, check_whole
from pathdex.index.paths import check_capacity
from pathdex.index.residual_kmeans import best_codes, fit_codebooks
from pathdex.kernels.hashing import EMPTY, find_slot, new_table


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


def residual_kmeans_paths(
    vectors: ArrayLike,
    paths_per_item: int,
    num_nodes: int,
    depth: int,
    *,
    seed: int = 0,
    iterations: int = 10,
    max_size: int | None = None,
) -> Codes:
    """J distinct paths per item (item, path): the residual k-means codes nearest to its vector (item, dim).

    A path takes at most `max_size` items (default: 32, or 8 times the mean of an even spread if that is more). An item
    whose near codes are full goes to a random path with the longest prefix in common, as many equal vectors need.
    """
    vectors = np.ascontiguousarray(vectors, np.float32)
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise DataError(
            f"vectors: has shape {vectors.shape}, must be (item, dim), neither empty; pass one row per item"
        )
    if not np.isfinite(vectors).all():
        raise DataError("vectors: holds NaN or infinity, must be finite; check the training that made them")
    capacity = _check_paths_per_item(paths_per_item, num_nodes, depth)
    check_whole("iterations", iterations)
    mean = len(vectors) * paths_per_item / capacity
    max_size = max(32, math.ceil(8 * mean)) if max_size is None else check_whole("max_size", max_size)
    if max_size * capacity < 2 * len(vectors) * paths_per_item:
        raise ConfigError(
            [f"max_size={max_size}: must be at least {math.ceil(2 * mean)}, twice the mean over all paths; raise it"]
        )
    random = np.random.default_rng(seed)
    codebooks = fit_codebooks(vectors, num_nodes, depth, iterations, random)
    candidates = best_codes(vectors, codebooks, beam=max(8, 2 * paths_per_item))
    order = random.permutation(len(vectors))
    return _place(candidates, order, paths_per_item, num_nodes, depth, max_size, int(random.integers(2**31)))


@njit(cache=True, nogil=True)
def _place(
    candidates: Codes, order: Codes, paths_per_item: int, num_nodes: int, depth: int, max_size: int, seed: int
) -> Codes:
    """Give every item its first J candidates that are not full, then random neighbours of its first candidate."""
    np.random.seed(seed)
    paths = np.empty((len(candidates), paths_per_item), np.int64)
    sizes = new_table(paths.size)
    for v in order:
        found, attempt = 0, 0
        while found < paths_per_item:
            if attempt < candidates.shape[1]:
                path = candidates[v, attempt]
            else:
                # One more random node at the end after every 8 attempts in vain.
                span = num_nodes ** min(depth, 1 + (attempt - candidates.shape[1]) // 8)
                path = candidates[v, 0] // span * span + np.random.randint(0, span)
            attempt += 1
            slot = find_slot(sizes, path)
            if sizes[slot, 0] == EMPTY:
                sizes[slot, 0], sizes[slot, 1] = path, 0
            if sizes[slot, 1] < max_size and not (paths[v, :found] == path).any():
                sizes[slot, 1] += 1
                paths[v, found] = path
                found += 1
    return paths


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
